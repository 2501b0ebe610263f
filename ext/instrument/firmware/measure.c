/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include "board.h"
#include "capture.h"
#include "events.h"
#include "link.h"
#include "stimulus.h"

#define FIRST_STIMULUS_TICKS (1000u * TICKS_PER_US)
/* A stimulus that is not seen this long after it was due was lost with a full ring. */
#define OVERDUE_TICKS (10000ull * TICKS_PER_US)
/* Edges processed before the rings are read again: capture.c leaves room for this time. */
#define EDGES_A_TURN 4u
#define LONGEST_SLEEP_TICKS (10000ull * TICKS_PER_US)

static struct configuration configuration;
static bool configured;
static enum run_state run;
static struct state counts;
static struct histogram histogram;
static uint64_t frozen_now;

static uint32_t random_state;
static bool driven_high; /* the requested level of the stimulus line */
static uint64_t pushed;	 /* requested edges; with a fixed period they wait in the FIFO of the state machine */
static uint64_t seen;	 /* edges of the stimulus line */
static bool scheduled;	 /* random gaps: an edge was requested and not seen yet */
static uint64_t overdue_at;
static bool awaiting;	     /* a stimulus was seen, but not its answer */
static bool awaiting_return; /* the line has returned; the answer to that is not measured */
static uint64_t stimulus_time;
static bool stimulus_high;
static bool late_expected;
static bool late_high;
static uint64_t last_edge; /* PERIODIC: time of the last edge that counts */
static bool have_last_edge;

static bool mode_drives(void)
{
	return configuration.mode != MODE_PERIODIC;
}

static bool is_stimulus(bool high)
{
	return configuration.edges == EDGES_BOTH || high == (configuration.edges == EDGES_RISING);
}

const char *measure_configure(const struct configuration *wanted)
{
	if (run == STATE_RUNNING)
		return "it is running: stop it first";
	if (wanted->mode < MODE_RESPONSE || wanted->mode > MODE_LOOPBACK)
		return "no such mode";
	if (wanted->edges > EDGES_FALLING || wanted->answer > ANSWER_ANY_EDGE ||
	    wanted->timing > TIMING_RANDOM || wanted->pull > PULL_DOWN ||
	    wanted->flags > (FLAG_STREAM_EVENTS | FLAG_LOOPBACK_INSIDE))
		return "a choice is out of range";
	/* 23 to 25 are the board's own. */
	if (wanted->stimulus_pin > 28 || wanted->answer_pin > 28 ||
	    (wanted->stimulus_pin >= 23 && wanted->stimulus_pin <= 25) ||
	    (wanted->answer_pin >= 23 && wanted->answer_pin <= 25))
		return "pins are GP0 to GP22 and GP26 to GP28";
	if (wanted->stimulus_pin == wanted->answer_pin)
		return "stimulus and answer need two pins";
	if (wanted->mode != MODE_PERIODIC) {
		if (wanted->period_min > wanted->period_max || wanted->period_max > STIMULUS_MAX_TICKS)
			return "the period is out of range: at most 17 s, and no longer than its upper bound";
		if (wanted->period_min < 2u * STIMULUS_MIN_TICKS)
			return "the period is shorter than 16 ticks";
		if (wanted->limit == 0)
			return "the limit of an answer is 0";
		if (wanted->timing == TIMING_FIXED && wanted->limit >= wanted->period_min)
			return "with a fixed period the limit of an answer must be shorter than the period";
	}
	configuration = *wanted;
	configured = true;
	run = STATE_IDLE;
	return NULL;
}

const struct configuration *measure_configuration(void)
{
	return &configuration;
}

/* xorshift; the same seed draws the same gaps. */
static uint32_t random_below(uint32_t bound)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return (uint32_t)(((uint64_t)random_state * bound) >> 32);
}

static bool more_stimuli(void)
{
	uint64_t edges_each = configuration.edges == EDGES_BOTH ? 1 : 2;

	return configuration.count == 0 || pushed < configuration.count * edges_each;
}

static void push(uint32_t ticks)
{
	if (!stimulus_edge(ticks, !driven_high))
		return;
	driven_high = !driven_high;
	pushed++;
	scheduled = true;
	overdue_at = capture_now() + ticks + OVERDUE_TICKS;
}

static void push_after_gap(void)
{
	if (more_stimuli())
		push(configuration.period_min +
		     random_below(configuration.period_max - configuration.period_min + 1u));
}

/* With a fixed period the edges wait in the FIFO, so that each comes exactly one period after the other. */
static void keep_grid(void)
{
	uint32_t half = configuration.period_min / 2u;

	while (more_stimuli()) {
		bool high = !driven_high;
		uint32_t ticks = configuration.period_min;

		if (configuration.edges != EDGES_BOTH)
			ticks = is_stimulus(high) ? configuration.period_min - half : half;
		if (pushed == 0)
			ticks = FIRST_STIMULUS_TICKS;
		uint64_t before = pushed;

		push(ticks);
		if (pushed == before)
			return;
	}
}

bool measure_start(void)
{
	if (!configured || run == STATE_RUNNING)
		return false;
	bool inside = configuration.mode == MODE_LOOPBACK && configuration.flags & FLAG_LOOPBACK_INSIDE;
	unsigned answer_pin = inside ? configuration.stimulus_pin : configuration.answer_pin;

	counts = (struct state){0};
	histogram_clear(&histogram);
	events_start();
	random_state = configuration.seed ? configuration.seed : 1u;
	pushed = 0;
	seen = 0;
	scheduled = false;
	awaiting = false;
	awaiting_return = false;
	late_expected = false;
	have_last_edge = false;
	driven_high = configuration.edges == EDGES_FALLING;
	board_pin_input(configuration.answer_pin, (enum pull)configuration.pull);
	if (mode_drives()) {
		stimulus_start(configuration.stimulus_pin, driven_high);
		board_pin_output(configuration.stimulus_pin);
		board_pin_watch(configuration.stimulus_pin, true);
	}
	board_pin_watch(answer_pin, true);
	capture_start(configuration.stimulus_pin, answer_pin, mode_drives());
	run = STATE_RUNNING;
	if (mode_drives() && configuration.timing == TIMING_RANDOM)
		push(FIRST_STIMULUS_TICKS);
	board_led(true);
	return true;
}

static void finish(enum run_state state)
{
	frozen_now = capture_now();
	if (mode_drives())
		stimulus_stop();
	capture_stop();
	board_pin_release(configuration.stimulus_pin);
	board_pin_release(configuration.answer_pin);
	events_flush(true);
	run = state;
	board_led(false);
}

void measure_stop(void)
{
	if (run == STATE_RUNNING)
		finish(STATE_IDLE);
}

static bool answers_return(void)
{
	return configuration.answer == ANSWER_FOLLOWS;
}

/* The stimulus has its answer, or will have none. */
static void resolved(void)
{
	awaiting = false;
	if (configuration.timing == TIMING_FIXED)
		return;
	if (configuration.edges == EDGES_BOTH)
		push_after_gap();
	else
		push(STIMULUS_MIN_TICKS); /* back at once, as Brown and Martin do */
}

static void missed(void)
{
	counts.missed++;
	late_expected = true;
	late_high = stimulus_high;
	resolved();
}

static void on_stimulus_line(const struct edge *edge)
{
	seen++;
	scheduled = false;
	if (!is_stimulus(edge->high)) {
		awaiting_return = answers_return();
		stimulus_time = edge->time;
		stimulus_high = edge->high;
		if (!awaiting_return && configuration.timing == TIMING_RANDOM)
			push_after_gap();
		return;
	}
	if (awaiting)
		missed();
	awaiting_return = false;
	counts.stimuli++;
	awaiting = true;
	stimulus_time = edge->time;
	stimulus_high = edge->high;
}

/* Returns whether the edge is the answer to a stimulus. */
static bool on_answer_line(const struct edge *edge)
{
	uint64_t latency = edge->time - stimulus_time;
	bool fits = configuration.answer == ANSWER_ANY_EDGE || edge->high == stimulus_high;

	counts.edges++;
	if (late_expected &&
	    (configuration.answer == ANSWER_ANY_EDGE ? !awaiting
						     : edge->high == late_high && !(awaiting && fits))) {
		late_expected = false;
		counts.late++;
		return false;
	}
	if (awaiting && fits && latency <= configuration.limit) {
		counts.answers++;
		late_expected = false;
		histogram_add(&histogram, (int64_t)latency, stimulus_time);
		resolved();
		return true;
	}
	if (awaiting && fits) {
		missed();
		late_expected = false;
		counts.late++;
		return false;
	}
	if (awaiting_return && fits) {
		awaiting_return = false;
		if (configuration.timing == TIMING_RANDOM)
			push_after_gap();
		return false;
	}
	counts.extra++;
	return false;
}

static void on_periodic_line(const struct edge *edge)
{
	counts.edges++;
	if (!is_stimulus(edge->high))
		return;
	if (have_last_edge) {
		int64_t distance = (int64_t)(edge->time - last_edge);

		histogram_add(&histogram, distance - (int64_t)configuration.nominal, edge->time);
	}
	have_last_edge = true;
	last_edge = edge->time;
}

static void on_edge(const struct edge *edge)
{
	bool accepted = false;

	if (edge->single)
		counts.glitches++;
	if (!mode_drives())
		on_periodic_line(edge);
	else if (edge->line == LINE_STIMULUS)
		on_stimulus_line(edge);
	else
		accepted = on_answer_line(edge);
	if (configuration.flags & FLAG_STREAM_EVENTS)
		events_add(edge, accepted);
}

/* Handles what had no result within its time. */
static void check_limits(void)
{
	uint64_t horizon = capture_horizon();

	if (awaiting && horizon > stimulus_time + configuration.limit)
		missed();
	if (awaiting_return && horizon > stimulus_time + configuration.limit) {
		awaiting_return = false;
		if (configuration.timing == TIMING_RANDOM)
			push_after_gap();
	}
	if (scheduled && horizon > overdue_at && configuration.timing == TIMING_RANDOM) {
		scheduled = false;
		push_after_gap();
	}
}

static void edges_were_lost(void)
{
	if (awaiting) {
		counts.voided++;
		resolved();
	}
	if (awaiting_return && configuration.timing == TIMING_RANDOM)
		push_after_gap();
	awaiting_return = false;
	late_expected = false;
	have_last_edge = false;
}

static bool done(void)
{
	if (configuration.count == 0)
		return false;
	if (!mode_drives())
		return histogram.count >= configuration.count;
	/* With a fixed period four edges may wait in the FIFO; one lost with a full ring has had its time. */
	return !more_stimuli() && !awaiting && !awaiting_return &&
	       (seen >= pushed || capture_horizon() > overdue_at + 4u * (uint64_t)configuration.period_max);
}

void measure_poll(void)
{
	struct edge edge;

	if (run != STATE_RUNNING)
		return;
	if (mode_drives() && configuration.timing == TIMING_FIXED)
		keep_grid();
	if (!capture_look())
		edges_were_lost();
	for (unsigned i = 0; i < EDGES_A_TURN; i++) {
		if (!capture_next(&edge)) {
			if (mode_drives())
				check_limits();
			break;
		}
		on_edge(&edge);
	}
	if (done())
		finish(STATE_FINISHED);
}

bool measure_running(void)
{
	return run == STATE_RUNNING;
}

uint32_t measure_due(void)
{
	if (run != STATE_RUNNING || !mode_drives() || !(awaiting || awaiting_return))
		return (uint32_t)LONGEST_SLEEP_TICKS;
	/* Some us later, when the horizon is past the limit. */
	uint64_t due = stimulus_time + configuration.limit + 4ull * TICKS_PER_US;
	uint64_t now = capture_now();

	if (due <= now)
		return TICKS_PER_US;
	return (uint32_t)(due - now < LONGEST_SLEEP_TICKS ? due - now : LONGEST_SLEEP_TICKS);
}

void measure_state(struct state *state)
{
	*state = counts;
	state->run = (uint8_t)run;
	state->mode = configuration.mode;
	state->now = run == STATE_RUNNING ? capture_now() : frozen_now;
	state->edges_lost = capture_losses().edges;
	state->capture_restarts = capture_losses().restarts;
	state->events_dropped = events_dropped();
	state->frames_damaged = link_losses().frames_damaged;
}

const struct histogram *measure_histogram(void)
{
	return &histogram;
}
