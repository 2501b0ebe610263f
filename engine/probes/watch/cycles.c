// SPDX-License-Identifier: MIT
#include "probes/watch/cycles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEARN_MAX 8192
#define LEARN_LEAST 32
#define STRAYS 64 /* so many waits elsewhere, and none of the model: another wait begins the cycle */
#define STUCK_PERIODS 10
#define LATE_WAITS 3	     /* so many waits for points that had passed show that it waits for each */
#define MOVED 3		     /* so many times in a row beside the grid, a period apart, are a new grid */
#define DRIFT 1e-5	     /* error of the period, as a share of it */
#define SAME_POINT_NS 1000.0 /* by how much an expiry may lie beside its point if they are exact */
#define POINTS_MAX 1000000   /* points of one gap that are counted one by one */
/* How fast the grid follows the expiries. The period follows slower, so that the two do not swing. */
#define FOLLOW 16.0
#define FOLLOW_PERIOD 1024.0

void cycles_begin(struct cycles *cycles, const struct cycle_wish *wish, cycle_take take, void *user)
{
	cycles->wish = *wish;
	cycles->take = take;
	cycles->user = user;
	cycles->learn_at = LEARN_LEAST;
}

void cycles_free(struct cycles *cycles)
{
	free(cycles->learned);
	cycles->learned = NULL;
	cycles->learned_count = cycles->learned_room = 0;
}

double cycles_period_ns(const struct cycles *cycles)
{
	return cycles->model.kind == CYCLE_PERIODIC ? cycles->model.grid.period_ns
						    : cycles->model.interval_ns;
}

static void keep(struct cycles *cycles, const struct wait *wait)
{
	if (cycles->learned_count == LEARN_MAX)
		return;
	if (cycles->learned_count == cycles->learned_room) {
		size_t room = cycles->learned_room ? 2 * cycles->learned_room : 256;
		struct wait *learned = realloc(cycles->learned, room * sizeof(*learned));

		cycles->no_memory |= !learned;
		if (!learned)
			return;
		cycles->learned = learned;
		cycles->learned_room = room;
	}
	cycles->learned[cycles->learned_count++] = *wait;
}

/* Returns how long the response of a release is at least, for which the thread did not wait, or after which
 * it may have run others: had it ended before the next point, the thread would have waited for that one. */
static int64_t least_response_ns(const struct cycles *cycles, int64_t release_ns, int64_t end_ns)
{
	int64_t next_ns = (int64_t)(cycles->model.grid.period_ns - cycle_tolerance_ns(&cycles->model));
	int64_t age_ns = end_ns - release_ns;

	if (cycles->model.kind != CYCLE_PERIODIC || cycles->model.shared || age_ns < 0)
		return 0;
	return age_ns < next_ns ? age_ns : next_ns;
}

/* Returns whether the thread has not begun a point at the end: it still waits for an earlier one, it has not
 * taken this expiration yet, or it has always waited for points that had passed. */
static bool is_still_due(const struct cycles *cycles, int64_t release_ns, int64_t end_ns)
{
	if (cycles->in_late_wait)
		return true;
	if (cycles->busy_until_ns != end_ns || cycles->model.shared)
		return false;
	if (cycles->model.source == SOURCE_TIMER)
		return release_ns > cycles->now.start_ns;
	return cycles->late_waits >= LATE_WAITS && !cycles->skips_waits;
}

/* A point of the grid for which the thread did not wait. possible: it may be none. */
static void overrun(struct cycles *cycles, const struct waits *waits, int64_t release_ns, int64_t now_ns,
		    bool possible, bool at_end)
{
	struct activation missed = {.release_ns = release_ns, .cpu = cycles->now.cpu};
	bool unknown = release_ns > cycles->gap_from_ns && release_ns <= cycles->gap_until_ns;

	if (!unknown && !possible)
		missed.at_least_ns = waits_off_until(waits, release_ns, now_ns) - release_ns;
	/* The thread learned of a surplus expiration only when it took the one before. */
	if (!unknown && cycles->model.source == SOURCE_TIMER &&
	    cycles->now.start_ns - release_ns > missed.at_least_ns)
		missed.at_least_ns = cycles->now.start_ns - release_ns;
	if (!unknown && !possible && at_end && is_still_due(cycles, release_ns, now_ns))
		missed.at_least_ns = now_ns - release_ns;
	if (!unknown && !possible)
		missed.least_response_ns = least_response_ns(cycles, release_ns, cycles->busy_until_ns);
	if (missed.least_response_ns < missed.at_least_ns)
		missed.least_response_ns = missed.at_least_ns;
	cycles->take(cycles->user, unknown ? CYCLE_UNKNOWN_RELEASE : CYCLE_OVERRUN, &missed);
}

/* Counts the points between the last release and the next one, exclusive. If the grid begins anew there, it
 * may have done so before: then there was only the first of them for certain. */
static void count_points(struct cycles *cycles, const struct waits *waits, double from_ns, double steps,
			 int64_t now_ns, bool at_end)
{
	for (double i = 1; i < steps && i < POINTS_MAX; i++)
		overrun(cycles, waits,
			(int64_t)llround(from_ns + i * cycles->model.grid.period_ns) - cycles->ahead_ns,
			now_ns, cycles->anew && i > 1, at_end);
}

/* Returns how far from its point an expiry may lie that is for this point and no other time. */
static double exact_ns(const struct cycle_candidate *model, double steps)
{
	return SAME_POINT_NS + 8 * model->grid.spread_ns + steps * model->grid.period_ns * DRIFT;
}

/* A program that sleeps for no time because it is late takes one point after the other. */
static double one_step(const struct cycles *cycles, double from_ns, double *error_ns)
{
	double period_ns = cycles->model.grid.period_ns;

	if (from_ns < period_ns - cycle_tolerance_ns(&cycles->model))
		return 0;
	*error_ns = from_ns < period_ns ? from_ns - period_ns : 0;
	return 1;
}

/* Returns how many points (>= 1) after the last one an expiry is. 0: it is not after it. *error_ns: its
 * distance from the grid. */
static double steps_to(struct cycles *cycles, int64_t expiry_ns, bool passed, double *error_ns)
{
	struct grid *grid = &cycles->model.grid;
	double tolerance_ns = cycle_tolerance_ns(&cycles->model);
	double from_ns = (double)expiry_ns - cycles->point_ns;
	double steps = round(from_ns / grid->period_ns);

	*error_ns = from_ns - steps * grid->period_ns;
	if (passed && cycles->gap_until_ns > cycles->returned_ns)
		return 0; /* it may be any of the points that came while events were lost */
	cycles->model.no_time |= passed && !cycles->model.anew && !cycles->model.shared &&
				 !cycles->model.rounded_ns &&
				 fabs(*error_ns) > exact_ns(&cycles->model, steps);
	if (passed && cycles->model.no_time)
		return one_step(cycles, from_ns, error_ns);
	if (cycles->model.rounded_ns) { /* it lies after its point */
		steps = floor((from_ns + tolerance_ns) / grid->period_ns);
		*error_ns = from_ns - steps * grid->period_ns;
		if (*error_ns <= tolerance_ns + (double)cycles->model.rounded_ns) {
			cycles->off_grid_in_row = 0;
			*error_ns = *error_ns < 0 ? *error_ns : 0;
			return steps;
		}
	}
	if (fabs(*error_ns) <= tolerance_ns) {
		cycles->off_grid_in_row = 0;
		return steps;
	}
	*error_ns = 0;
	if (cycles->model.shared)
		return 0;
	if (passed)
		return one_step(cycles, from_ns, error_ns);
	cycles->off_grid_in_row++;
	return floor((from_ns + tolerance_ns) / grid->period_ns);
}

/* Returns whether the grid begins anew at an expiry this many steps after the last point. Some programs do
 * that when they are late, after releases without a wait. */
static bool begins_anew(const struct cycles *cycles, const struct wait *wait, double steps, double error_ns)
{
	const struct cycle_candidate *model = &cycles->model;
	bool off_grid = cycles->off_grid_in_row || fabs(error_ns) > exact_ns(model, steps);

	if (model->shared || model->rounded_ns || cycle_sleeps_for_no_time(wait))
		return false;
	return off_grid && (steps > 1 || model->anew || (cycles->off_grid_in_row && cycles->moved >= MOVED));
}

/* Some programs set all later timers beside the grid once they were late. If the program slept for no time,
 * it was late, and the first such timer shows it. */
static void note_move(struct cycles *cycles, int64_t expiry_ns, double steps, bool passed)
{
	double apart_ns = (double)(expiry_ns - cycles->off_grid_ns) - steps * cycles->model.grid.period_ns;

	if (passed)
		cycles->moved = MOVED;
	else if (!cycles->off_grid_in_row)
		cycles->moved = 0;
	else if (cycles->moved < MOVED)
		cycles->moved = fabs(apart_ns) <= cycle_tolerance_ns(&cycles->model) ? cycles->moved + 1 : 1;
	cycles->off_grid_ns = expiry_ns;
}

/* Returns the point of the grid for an expiry; 0: it is the one before. */
static int64_t to_grid(struct cycles *cycles, const struct wait *wait, int64_t release_ns)
{
	int64_t ahead_ns = cycle_ahead_ns(&cycles->model, wait), expiry_ns = release_ns + ahead_ns;
	struct grid *grid = &cycles->model.grid;
	double steps, error_ns;

	if (cycles->model.wall && fabs((double)(ahead_ns - cycles->ahead_ns)) > grid->period_ns / 2)
		cycles->point_ns = 0; /* the wall clock was set */
	cycles->ahead_ns = ahead_ns;
	if (cycles->point_ns == 0) {
		double from_origin = round(((double)expiry_ns - (double)grid->origin_ns) / grid->period_ns);

		cycles->point_ns = (double)grid->origin_ns + (from_origin - 1) * grid->period_ns;
		if (cycles->model.anew)
			cycles->point_ns = (double)expiry_ns - grid->period_ns;
	}
	steps = steps_to(cycles, expiry_ns, cycle_sleeps_for_no_time(wait), &error_ns);
	note_move(cycles, expiry_ns, steps, cycle_sleeps_for_no_time(wait));
	if (steps < 1)
		return 0;
	cycles->anew = begins_anew(cycles, wait, steps, error_ns);
	cycles->steps = steps;
	cycles->before_ns = cycles->point_ns;
	if (cycles->anew) {
		cycles->point_ns = (double)expiry_ns;
		return release_ns;
	}
	cycles->point_ns += steps * grid->period_ns + error_ns / FOLLOW;
	grid->period_ns += error_ns / steps / FOLLOW_PERIOD;
	/* An expiry that was computed a little too early is the program's own release. */
	return (error_ns < 0 ? expiry_ns : (int64_t)llround(cycles->point_ns)) - cycles->ahead_ns;
}

/* Returns how long the response of the present activation is at least, if the thread may have run later
 * releases until end_ns. */
static int64_t certain_response_ns(const struct cycles *cycles, const struct waits *waits, int64_t end_ns)
{
	int64_t next_ns = cycles->now.release_ns + (int64_t)cycles_period_ns(cycles);
	int64_t until_ns = waits_off_until(waits, next_ns, end_ns);

	until_ns = until_ns < end_ns ? until_ns : end_ns;
	return until_ns > next_ns ? until_ns - cycles->now.release_ns
				  : least_response_ns(cycles, cycles->now.release_ns, end_ns);
}

/* The activation before has ended. Releases between may have been run late before the thread waited again. */
static void finish(struct cycles *cycles, const struct waits *waits, bool overran)
{
	if (!cycles->active || !cycles->ended)
		return;
	cycles->active = false;
	cycles->now.certain = !overran;
	cycles->now.least_response_ns = overran ? certain_response_ns(cycles, waits, cycles->now.end_ns)
						: cycles->now.end_ns - cycles->now.release_ns;
	cycles->take(cycles->user, CYCLE_DONE, &cycles->now);
}

static void begin(struct cycles *cycles, const struct waits *waits, const struct wait *wait,
		  int64_t release_ns)
{
	int64_t timer_ns = release_ns;

	cycles->steps = 1;
	cycles->anew = false;
	if (cycles->model.kind == CYCLE_PERIODIC)
		release_ns = to_grid(cycles, wait, release_ns);
	else
		cycles->point_ns = (double)release_ns;
	cycles->busy_until_ns = cycles->active && cycles->ended ? cycles->now.end_ns : 0;
	finish(cycles, waits, cycles->steps > 1);
	if (!release_ns) {
		cycles->others++;
		return;
	}
	if (cycles->steps > 1)
		count_points(cycles, waits, cycles->before_ns, cycles->steps, wait->exit_ns, false);
	cycles->skips_waits |= cycles->steps > 1;
	cycles->late_waits += (double)(wait->enter_ns - release_ns) > cycle_tolerance_ns(&cycles->model);
	cycles->now = (struct activation){
		.release_ns = release_ns,
		.start_ns = wait->exit_ns,
		.timer_ns = (double)(timer_ns - release_ns) > SAME_POINT_NS ? timer_ns : 0,
		.period_ns = cycles->last_start_ns ? wait->exit_ns - cycles->last_start_ns : 0,
		.cpu = wait->cpu,
	};
	cycles->last_start_ns = cycles->returned_ns = wait->exit_ns;
	cycles->active = true;
	cycles->ended = cycles->paused = false;
	cycles->looks = 0;
	cycles->ran_start_ns = wait->ran_exit_ns;
	cycles->doubts_start = wait->doubts_exit;
	cycles->activations++;
	cycles->take(cycles->user, CYCLE_BEGUN, &cycles->now);
}

/* A deadline thread whose next period has begun already yields without a timer. Returns the next point of the
 * grid if it has passed, else 0. */
static int64_t passed_point(const struct cycles *cycles, const struct wait *wait)
{
	double next_ns = cycles->point_ns + cycles->model.grid.period_ns - (double)cycles->ahead_ns;

	if (cycles->model.kind != CYCLE_PERIODIC || cycles->model.source != SOURCE_TIME_OUT ||
	    cycles->last_start_ns == 0 || wait->own.expiry_ns || wait->slept ||
	    !blocking_call_has_special_timer(&wait->call))
		return 0;
	return next_ns <= (double)wait->exit_ns ? (int64_t)llround(next_ns) : 0;
}

/* Returns whether the thread has not come back to its wait for long, but waits elsewhere, or whether its
 * expiries have left the grid. */
static bool changes_model(const struct cycles *cycles, int64_t now_ns)
{
	double away_ns = (double)(now_ns - cycles->seen_ns);

	if (cycles->learned_count < STRAYS)
		return cycles->off_grid_in_row >= STRAYS / 2;
	return away_ns > STUCK_PERIODS * cycles_period_ns(cycles);
}

static void use(struct cycles *cycles, const struct cycle_choice *choice)
{
	cycles->changes += cycles->chosen;
	cycles->choice = *choice;
	cycles->model = choice->candidates[choice->chosen];
	cycles->chosen = true;
	cycles->active = false;
	cycles->point_ns = 0;
	cycles->last_start_ns = 0;
	cycles->off_grid_in_row = 0;
	if (cycles->learned_count)
		cycles->seen_ns = cycles->learned[cycles->learned_count - 1].exit_ns;
}

static void replay(struct cycles *cycles, const struct waits *waits)
{
	struct wait *learned = cycles->learned;
	size_t count = cycles->learned_count;

	cycles->learned = NULL;
	cycles->learned_count = cycles->learned_room = 0;
	for (size_t i = 0; i < count; i++) {
		if (learned[i].call.number == GAP_CALL) {
			cycles_lost(cycles, waits, learned[i].enter_ns, learned[i].exit_ns);
			continue;
		}
		cycles_enter(cycles, &learned[i]);
		cycles_return(cycles, waits, &learned[i]);
	}
	free(learned);
	if (waits->waiting)
		cycles_enter(cycles, &waits->now);
}

/* The thread waits elsewhere: it may have begun another phase of its work. */
static void choose_again(struct cycles *cycles, const struct waits *waits)
{
	struct cycle_choice choice;

	if (!cycle_choose(cycles->learned, cycles->learned_count, &cycles->wish, &choice)) {
		cycles->no_memory = true;
	} else if (choice.chosen >= 0 && (choice.candidates[choice.chosen].source != SOURCE_DATA ||
					  cycles->model.source == SOURCE_DATA)) {
		use(cycles, &choice);
		replay(cycles, waits);
	}
	cycles->learned_count = 0;
}

void cycles_enter(struct cycles *cycles, const struct wait *wait)
{
	if (!cycles->chosen || !cycles->active || cycles->ended || !cycle_waits_at(&cycles->model, wait) ||
	    wait->enter_ns <
		    cycles->now.start_ns) /* the wait that began it, with an expiry that showed later */
		return;
	cycles->ended = true;
	cycles->now.end_ns = wait->enter_ns;
	cycles->now.execution_ns =
		wait->doubts_enter == cycles->doubts_start ? wait->ran_enter_ns - cycles->ran_start_ns : -1;
}

/* Returns whether the wait may begin a cycle, or be at the place of one that does. */
static bool is_worth(struct cycles *cycles, const struct wait *wait)
{
	uint64_t object = blocking_call_object(&wait->call);
	bool waited = wait->slept || wait->own.expiry_ns || wait->fired_count;

	for (size_t i = 0; i < SITES; i++) {
		if (cycles->sites[i].number == wait->call.number && cycles->sites[i].object == object)
			return waited || !cycles->chosen;
	}
	if (waited) {
		cycles->sites[cycles->site_count % SITES].number = wait->call.number;
		cycles->sites[cycles->site_count++ % SITES].object = object;
	}
	return waited;
}

/* The data had come while the thread was busy: no event shows when. */
static void unseen(struct cycles *cycles, const struct waits *waits, const struct wait *wait)
{
	const struct activation release = {.release_ns = wait->enter_ns, .cpu = wait->cpu};

	finish(cycles, waits, false);
	cycles->take(cycles->user, CYCLE_UNKNOWN_RELEASE, &release);
}

/* An event loop looks for other events without waiting, in the call in which it also waits. */
static bool only_looked(const struct cycles *cycles, const struct wait *wait)
{
	return cycles->model.source == SOURCE_TIME_OUT && !wait->own.expiry_ns && !wait->slept;
}

/* An event loop looks once after each wait. If it looks again without waiting, a time may have passed
 * meanwhile; the points of a grid show that, other times do not. */
static void look(struct cycles *cycles, const struct wait *wait)
{
	const struct activation unknown = {.release_ns = wait->enter_ns, .cpu = wait->cpu};

	cycles->looked = true;
	if (cycles->looks++ && cycles->model.kind != CYCLE_PERIODIC)
		cycles->take(cycles->user, CYCLE_UNKNOWN_RELEASE, &unknown);
}

/* The time left until a release may be as long as the pause, which comes once a cycle. Returns whether the
 * wait is for a release, though it is as long. */
static bool is_after_pause(const struct cycles *cycles, const struct wait *wait)
{
	const struct cycle_candidate *model = &cycles->model;
	double period_ns = model->grid.period_ns, steps;
	double from_ns = (double)(wait->own.expiry_ns + cycle_ahead_ns(model, wait)) - cycles->point_ns;

	if (model->kind != CYCLE_PERIODIC || !cycles->paused || !cycle_is_pause(model, wait))
		return false;
	steps = round(from_ns / period_ns);
	return steps == 1 && fabs(from_ns - period_ns) <= exact_ns(model, steps);
}

/* Returns the release of a wait in the call that begins the cycle; 0: it was for none. */
static int64_t release_of(struct cycles *cycles, const struct wait *wait)
{
	struct cycle_candidate model = cycles->model;
	int64_t release_ns;

	if (is_after_pause(cycles, wait))
		model.pause_ns = 0;
	release_ns = cycle_release_ns(&model, wait);
	return release_ns ? release_ns : passed_point(cycles, wait);
}

/* The wait is none for a release: the activation goes on. */
static bool goes_on(struct cycles *cycles, const struct wait *wait)
{
	bool paused = cycle_is_pause(&cycles->model, wait) && !is_after_pause(cycles, wait);

	cycles->paused |= paused && !wait->interrupted;
	if (only_looked(cycles, wait))
		look(cycles, wait);
	else if (!paused)
		return false;
	cycles->ended = false;
	return true;
}

void cycles_return(struct cycles *cycles, const struct waits *waits, const struct wait *wait)
{
	bool here = cycles->chosen && cycle_waits_at(&cycles->model, wait);
	int64_t release_ns = here ? release_of(cycles, wait) : 0;

	if (here && !release_ns && goes_on(cycles, wait))
		here = false;
	if (release_ns) {
		begin(cycles, waits, wait, release_ns);
		if (!cycles->off_grid_in_row) {
			cycles->learned_count = 0;
			cycles->seen_ns = wait->exit_ns > cycles->seen_ns ? wait->exit_ns : cycles->seen_ns;
			return;
		}
	} else if (here) {
		cycles->others++;
		if (cycles->model.source == SOURCE_DATA && !wait->slept && !wait->interrupted &&
		    (wait->result >= 0 || cycles->broken_off))
			unseen(cycles, waits, wait);
	}
	if (here)
		cycles->broken_off = wait->interrupted;
	if (!is_worth(cycles, wait))
		return;
	keep(cycles, wait);
	if (!cycles->chosen && cycles->learned_count == LEARN_MAX)
		cycles_learn(cycles, waits, false);
	else if (cycles->chosen && changes_model(cycles, wait->exit_ns))
		choose_again(cycles, waits);
	else if (cycles->chosen && cycles->learned_count == LEARN_MAX)
		cycles->learned_count = 0;
}

/* Returns whether the thread may be in a call that does not end its activation. */
static bool may_go_on(const struct cycles *cycles)
{
	return !cycles->ended || cycles->model.pause_ns > 0 || cycles->looked;
}

/* Counts what is not known because of a gap; points of a grid are counted when the thread comes back. */
static void lose_releases(struct cycles *cycles, const struct waits *waits, int64_t from_ns, int64_t until_ns)
{
	const struct activation unknown = {.release_ns = from_ns, .cpu = cycles->now.cpu};
	double interval_ns = cycles_period_ns(cycles);
	double releases = interval_ns > 0 ? ceil((double)(until_ns - from_ns) / interval_ns) : 1;

	if (cycles->model.kind ==
	    CYCLE_DATA) /* data may come in bursts: as many as independent data could be */
		releases += ceil(3 * sqrt(releases));

	if (cycles->active && may_go_on(cycles)) {
		cycles->now.at_least_ns = 0;
		cycles->take(cycles->user, CYCLE_LOST_END, &cycles->now);
		cycles->active = false;
	}
	finish(cycles, waits, false);
	for (double i = 0; cycles->model.kind != CYCLE_PERIODIC && i < releases && i < POINTS_MAX; i++)
		cycles->take(cycles->user, CYCLE_UNKNOWN_RELEASE, &unknown);
}

void cycles_lost(struct cycles *cycles, const struct waits *waits, int64_t from_ns, int64_t until_ns)
{
	if (!cycles->chosen) {
		const struct wait gap = {.call.number = GAP_CALL, .enter_ns = from_ns, .exit_ns = until_ns};

		keep(cycles, &gap);
		return;
	}
	lose_releases(cycles, waits, from_ns, until_ns);
	cycles->last_start_ns = 0;
	/* Two gaps without a release between them are one. */
	if (cycles->gap_until_ns < cycles->now.start_ns || !cycles->gap_until_ns)
		cycles->gap_from_ns = from_ns;
	cycles->gap_until_ns = until_ns;
}

bool cycles_learn(struct cycles *cycles, const struct waits *waits, bool at_end)
{
	struct cycle_choice choice;

	if (cycles->chosen || (cycles->learned_count < cycles->learn_at && !at_end))
		return cycles->chosen;
	if (!cycle_choose(cycles->learned, cycles->learned_count, &cycles->wish, &choice)) {
		cycles->no_memory = true;
		return false;
	}
	cycles->choice = choice;
	/* The other waits may be of the same cycle: then there are too few. */
	if (choice.chosen < 0 || (!at_end && choice.candidates[choice.chosen].count < LEARN_LEAST &&
				  cycles->learned_count < LEARN_MAX)) {
		cycles->learn_at = 2 * cycles->learned_count;
		if (choice.chosen < 0 && cycles->learned_count == LEARN_MAX)
			cycles->learned_count = 0;
		return false;
	}
	use(cycles, &choice);
	replay(cycles, waits);
	return true;
}

/* Returns the release for which the thread waits; 0: it is unknown, or the thread does not wait. */
static int64_t next_release(const struct cycles *cycles, const struct waits *waits, int64_t now_ns)
{
	const struct wait *wait = waits->waiting ? &waits->now : &waits->interrupted;
	int64_t release_ns = 0;

	if (wait->call.number == GAP_CALL || !cycle_waits_at(&cycles->model, wait) ||
	    cycle_is_pause(&cycles->model, wait))
		return 0;
	if (cycles->model.source == SOURCE_TIME_OUT)
		release_ns = waits_expiry_ns(waits, &wait->own, now_ns);
	for (unsigned int i = 0; i < WAIT_TIMERS && cycles->model.source == SOURCE_TIMER; i++) {
		if (waits->timers[i].timer == cycles->model.timer && !waits->expired[i])
			release_ns = waits->timers[i].expiry_ns;
	}
	return release_ns;
}

/* The same, if its time has come. */
static int64_t late_release(const struct cycles *cycles, const struct waits *waits, int64_t now_ns)
{
	int64_t release_ns = next_release(cycles, waits, now_ns);

	return release_ns < now_ns ? release_ns : 0;
}

/* Returns whether the wall clock was set since the last release, on whose grid the points then lie elsewhere.
 */
static bool left_the_clock(const struct cycles *cycles, const struct waits *waits)
{
	const struct clock_offsets *offsets = waits->offsets;
	double most_ns = cycles->model.grid.period_ns / 2;

	return cycles->model.wall && offsets &&
	       fabs((double)(offsets->real_ns - cycles->ahead_ns)) > most_ns &&
	       fabs((double)(offsets->tai_ns - cycles->ahead_ns)) > most_ns;
}

/* Counts the points of the grid from this release on for which the thread did not come back. unknown: events
 * were lost, and none came since. */
static void count_rest(struct cycles *cycles, const struct waits *waits, int64_t release_ns, int64_t now_ns,
		       bool unknown)
{
	double period_ns = cycles->model.grid.period_ns;
	double steps = floor((double)(now_ns - release_ns) / period_ns);

	if (unknown)
		cycles->gap_until_ns = now_ns;
	if (left_the_clock(cycles, waits)) {
		cycles->gap_from_ns = release_ns;
		cycles->gap_until_ns = now_ns;
	}
	count_points(cycles, waits, (double)(release_ns + cycles->ahead_ns), steps + 1, now_ns, true);
}

/* Returns whether the thread is not at the wait that begins its cycle. */
static bool is_away(const struct cycles *cycles, const struct waits *waits)
{
	return !waits->waiting || !cycle_waits_at(&cycles->model, &waits->now);
}

/* Returns whether the wall clock was set while the thread waits for one of its times. */
static bool was_set(const struct cycles *cycles, const struct waits *waits, int64_t next_ns)
{
	int64_t ahead_ns = waits->now.own.there_ns - next_ns;

	return cycles->model.wall &&
	       (!next_ns || fabs((double)(ahead_ns - cycles->ahead_ns)) > cycles->model.grid.period_ns / 2);
}

/* Counts the points between the last release and the one for which the thread waits. If that is not known,
 * since events were lost, all points since may have come. */
static void count_passed(struct cycles *cycles, const struct waits *waits, int64_t now_ns)
{
	int64_t next_ns = next_release(cycles, waits, now_ns);
	double from_ns = cycles->point_ns - (double)cycles->ahead_ns,
	       period_ns = cycles->model.grid.period_ns;

	if (cycles->model.kind != CYCLE_PERIODIC || was_set(cycles, waits, next_ns))
		return;
	if (next_ns) {
		double steps = round(((double)next_ns - from_ns) / period_ns);

		cycles->anew = begins_anew(cycles, waits->waiting ? &waits->now : &waits->interrupted, steps,
					   (double)next_ns - from_ns - steps * period_ns);
		count_points(
			cycles, waits, cycles->point_ns,
			floor((fmin((double)next_ns - period_ns / 2, (double)now_ns) - from_ns) / period_ns) +
				1,
			now_ns, false);
	} else if (cycles->gap_until_ns > cycles->returned_ns)
		count_rest(cycles, waits, (int64_t)from_ns, now_ns, true);
}

/* Returns whether points lie between the last release and the one for which the thread waits. */
static bool has_passed_points(const struct cycles *cycles, const struct waits *waits, int64_t now_ns)
{
	double next_ns = (double)(next_release(cycles, waits, now_ns) + cycles->ahead_ns);

	return cycles->model.kind == CYCLE_PERIODIC &&
	       next_ns > cycles->point_ns + 1.5 * cycles->model.grid.period_ns;
}

/* A thread that has been busy or stopped for longer than the usual time between two releases at the end has
 * not taken what came since, which no event shows. */
static void count_queued(struct cycles *cycles, const struct waits *waits, int64_t now_ns)
{
	const struct wait *stopped = &waits->interrupted;
	bool at_wait = !is_away(cycles, waits), busy = cycles->active && !cycles->ended;
	struct activation unknown = {.release_ns = busy ? cycles->now.release_ns : stopped->exit_ns,
				     .cpu = cycles->now.cpu};
	double interval_ns = cycles_period_ns(cycles);

	if (at_wait || (!busy && stopped->call.number == GAP_CALL) || interval_ns <= 0)
		return;
	/* Data may come at any time. */
	for (double age_ns = (double)(now_ns - unknown.release_ns), i = cycles->model.kind != CYCLE_DATA;
	     age_ns > i * interval_ns && i < POINTS_MAX; i++)
		cycles->take(cycles->user, CYCLE_UNKNOWN_RELEASE, &unknown);
}

/* Returns whether a time for which the thread waits is no point of its grid. */
static bool is_elsewhere(const struct cycles *cycles, int64_t time_ns)
{
	const struct cycle_candidate *model = &cycles->model;
	double from_ns = (double)(time_ns + cycles->ahead_ns) - cycles->point_ns;
	double error_ns = from_ns - round(from_ns / model->grid.period_ns) * model->grid.period_ns;

	return model->kind == CYCLE_PERIODIC && !model->wall && !model->anew && !model->rounded_ns &&
	       !model->no_time && fabs(error_ns) > cycle_tolerance_ns(model);
}

/* Returns whether the thread may have ended its activation, and run later releases without a wait. */
static bool may_have_run_later(const struct cycles *cycles, int64_t now_ns)
{
	double age_ns = (double)(now_ns - cycles->now.release_ns);

	return cycles->model.kind == CYCLE_PERIODIC && !cycles->model.shared &&
	       cycles->model.source != SOURCE_TIMER &&
	       age_ns > cycles->model.grid.period_ns - cycle_tolerance_ns(&cycles->model) &&
	       !is_still_due(cycles, now_ns, now_ns);
}

/* Returns whether the thread has only entered the call: it may be late for the time that it is about to name.
 */
static bool has_not_begun_to_wait(const struct cycles *cycles, const struct waits *waits)
{
	return cycles->model.kind == CYCLE_PERIODIC && cycles->model.source == SOURCE_TIME_OUT &&
	       waits->has_calls && waits->waiting && !waits->now.own.expiry_ns && !waits->now.slept;
}

bool cycles_end(struct cycles *cycles, const struct waits *waits, int64_t now_ns, bool gone)
{
	struct activation unfinished = {.cpu = cycles->now.cpu};
	double period_ns;
	int64_t late_ns;

	cycles_learn(cycles, waits, true);
	if (!cycles->chosen || !cycles->activations)
		return false;
	period_ns = cycles_period_ns(cycles);
	late_ns = late_release(cycles, waits, now_ns);
	cycles->in_late_wait = late_ns && waits->has_calls && waits->waiting && !cycles->model.shared;
	if (waits->waiting && cycle_is_pause(&cycles->model, &waits->now))
		cycles->ended = false;
	if (cycles->model.kind == CYCLE_DATA || cycles->model.kind == CYCLE_OWN_SCHEDULE)
		count_queued(cycles, waits, now_ns);
	cycles->busy_until_ns = !cycles->active ? 0 : cycles->ended ? cycles->now.end_ns : now_ns;
	finish(cycles, waits, has_passed_points(cycles, waits, now_ns));
	if (cycles->active)
		unfinished = cycles->now;
	else if (gone) { /* between two activations: it runs no release that came since */
		if (cycles->model.kind == CYCLE_PERIODIC && !cycles->model.anew)
			count_rest(cycles, waits, (int64_t)cycles->point_ns - cycles->ahead_ns, now_ns,
				   false);
		return false;
	} else if (late_ns || is_away(cycles, waits))
		unfinished.release_ns = late_ns ? late_ns : (int64_t)cycles->point_ns - cycles->ahead_ns;
	if (late_ns && is_elsewhere(cycles, late_ns)) {
		count_rest(cycles, waits, (int64_t)cycles->point_ns - cycles->ahead_ns, now_ns, true);
		return false;
	}
	if (!unfinished.release_ns && has_not_begun_to_wait(cycles, waits)) {
		count_rest(cycles, waits, (int64_t)cycles->point_ns - cycles->ahead_ns, now_ns, true);
		return false;
	}
	if (late_ns || !unfinished.release_ns)
		count_passed(cycles, waits, now_ns);
	if (!unfinished.release_ns)
		return false; /* it waits for its next release */
	unfinished.at_least_ns = now_ns - unfinished.release_ns;
	if (cycles->active && may_have_run_later(cycles, now_ns) &&
	    certain_response_ns(cycles, waits, now_ns) < unfinished.at_least_ns)
		cycles->take(cycles->user, CYCLE_LOST_END, &unfinished);
	else if (cycles->active || late_ns)
		cycles->take(cycles->user, CYCLE_CUT, &unfinished);
	if ((double)(now_ns - unfinished.release_ns) <= period_ns)
		return false;
	if (cycles->model.kind == CYCLE_PERIODIC)
		count_rest(cycles, waits, unfinished.release_ns, now_ns,
			   !late_ns && cycles->gap_until_ns > cycles->returned_ns);
	return !gone && period_ns > 0 && (double)(now_ns - cycles->returned_ns) > STUCK_PERIODS * period_ns;
}
