// SPDX-License-Identifier: MIT
/*
 * path: the cycle of a control loop with a device behind a network that only answers. At each release, a
 * thread sends a frame and waits for the answer, at most until the next release.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/commands.h"
#include "base/container_of.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/ring.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/verbs.h"
#include "ext/network/engine/cycles.h"
#include "ext/network/engine/device_clock.h"
#include "ext/network/engine/far_end.h"
#include "harness/harness.h"
#include "rt/wait.h"

#define ROOM 32768 /* events between two drains */
#define LEAD_NS (NS_PER_S / 50)
#define DRAIN_NS (NS_PER_S / 20)
#define LEAST_INTERVAL_NS 20000 /* at most 50,000 frames a second */
#define ALONE_CYCLES 10		/* so many cycles, and so long, without any answer: nobody is there */
#define ALONE_NS (2 * NS_PER_S)
#define OFFSET_TRIES 16
#ifndef sigev_notify_thread_id /* glibc */
#define sigev_notify_thread_id _sigev_un._tid
#endif
#define AGAIN_NS 100000 /* the signal of a timer comes again, because one before the sleep ends no sleep */
#define STEP_NS 2000	/* CLOCK_REALTIME was set, if its offset changed by more */

enum { RECEIVE_BLOCK, RECEIVE_POLL };
static const char *const receive_names[] = {"block", "poll", NULL};

static struct {
	const char *path;
	int64_t interval_ns, timeout_ns, size, socket_priority, busy_poll_us;
	int receive;
} options = {.interval_ns = 1000000, .timeout_ns = NS_PER_S / 10};

static const struct option_entry table[] = {
	{.name = "path",
	 .kind = OPTION_TEXT,
	 .value = &options.path,
	 .help = "icmp:ADDRESS, udp:ADDRESS:PORT, eth:INTERFACE,MAC[,ETHERTYPE] or ethercat:INTERFACE"},
	{.name = "interval-ns",
	 .kind = OPTION_INT,
	 .value = &options.interval_ns,
	 .min = LEAST_INTERVAL_NS,
	 .max = 60 * NS_PER_S,
	 .help = "time between two releases"},
	{.name = "timeout-ns",
	 .kind = OPTION_INT,
	 .value = &options.timeout_ns,
	 .min = 1000000,
	 .max = 60 * NS_PER_S,
	 .help = "an answer that comes later than this after its release is lost"},
	{.name = "receive",
	 .kind = OPTION_CHOICE,
	 .value = &options.receive,
	 .choices = receive_names,
	 .help = "how the thread waits for the answer: asleep, or looking for it all the time"},
	{.name = "busy-poll-us",
	 .kind = OPTION_INT,
	 .value = &options.busy_poll_us,
	 .min = 0,
	 .max = 10000,
	 .help = "SO_BUSY_POLL: how long a receive polls the network card itself; 0: never"},
	{.name = "socket-priority",
	 .kind = OPTION_INT,
	 .value = &options.socket_priority,
	 .min = 0,
	 .max = 15,
	 .help = "SO_PRIORITY of the frames, by which queueing disciplines choose"},
	{.name = "size",
	 .kind = OPTION_INT,
	 .value = &options.size,
	 .min = 0,
	 .max = FRAME_MAX,
	 .help = "bytes in a frame, after the headers of IP and UDP or Ethernet; 0: as few as possible"},
	{.shared = harness_option_cpu},
	{.shared = harness_option_count,
	 .help = "number of cycles in the measured phase, instead of a duration"},
	{.shared = harness_options_measuring},
	{.shared = explain_options_table},
	{0},
};

enum part { WAKE_UP, SEND, WIRE_AND_DEVICE, RECEIVE, PARTS };
static const char *const part_names[PARTS] = {"wake-up", "send", "wire-and-device", "receive"};
enum { ROUND_TRIP, FIRST_PART, JITTER = FIRST_PART + PARTS, CARD, ALL_SERIES };

/* The thread with the loop. The first part is its own while it measures. */
struct loop {
	struct slot_ring ring;
	struct frame_event *events;
	timer_t timer;	       /* its signal ends a sleep; set while nothing is measured. A timeout of the
				* receive would take time in the response: its timer is set and cancelled there */
	int64_t timer_ns;      /* when it is due; 0: not set */
	int64_t sent_ns;       /* when the newest frame was sent; 0: that was pushed */
	int64_t pending;       /* sent frames whose time stamp was not read */
	int64_t unanswered_ns; /* the release of the newest unanswered cycle; 0: none */
	_Atomic int64_t not_kept, foreign;
	_Atomic int64_t slaves_least, slaves_most; /* of EtherCAT, that read a frame */

	int64_t start_ns, total_count;
	struct far_end end;
	struct harness_thread thread;

	struct far_end_frame frame;
	_Atomic int send_error, receive_error; /* the last ones */
	int timer_error;
	bool somebody;		   /* any answer came, even a late one */
	bool answers;		   /* the previous cycle */
	_Atomic bool nobody, sent; /* nothing answered for long; the kernel took a frame */
	unsigned char request[FRAME_MAX];
};

struct state {
	struct loop loop;
	struct cycles cycles;
	struct device_clock device;
	struct series series[ALL_SERIES];
	struct series *all_series[ALL_SERIES];
	struct harness_thread *threads[1], *measurers[ALL_SERIES];
	struct json *j;
	int64_t warm_up_count;
	int64_t offset_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	int64_t split, not_split, clock_steps;
	int64_t departed_ns, departed_number; /* of the previous cycle with a time stamp */
};

static void push_stamped(struct loop *l, enum frame_event_kind kind, int64_t cycle, int64_t time_ns,
			 struct far_end_stamps stamps)
{
	size_t slot;

	if (!slot_ring_next(&l->ring, &slot)) {
		atomic_fetch_add_explicit(&l->not_kept, 1, memory_order_relaxed);
		return;
	}
	l->events[slot] = (struct frame_event){kind, cycle, time_ns, stamps.software_ns, stamps.hardware_ns};
	slot_ring_push(&l->ring);
}

static void push(struct loop *l, enum frame_event_kind kind, int64_t cycle, int64_t time_ns)
{
	push_stamped(l, kind, cycle, time_ns, (struct far_end_stamps){0});
}

/* Pushes that a frame was sent, but only after the receive: before it, this would take time in the response.
 */
static void push_sent(struct loop *l, int64_t number)
{
	if (l->sent_ns)
		push(l, FRAME_SENT, number, l->sent_ns);
	l->sent_ns = 0;
}

static bool stopped(void)
{
	return atomic_load_explicit(&harness_shared.stop, memory_order_relaxed);
}

/* Reads the time stamps of sent frames. */
static void take_departures(struct loop *l)
{
	if (!l->pending)
		return;
	far_end_report(&l->end, true);
	for (; l->pending > 0; l->pending--) {
		far_end_take_sent(&l->end, &l->frame);
		if (l->frame.length < 0)
			break;
		push_stamped(l, FRAME_DEPARTED,
			     frame_sent(&l->end.format, l->frame.data, (size_t)l->frame.length), 0,
			     far_end_stamps(&l->frame));
	}
	far_end_report(&l->end, false);
}

static void count_slaves(struct loop *l)
{
	int64_t slaves = frame_slaves(l->frame.data), least = atomic_load(&l->slaves_least);

	if (!least || slaves < least)
		atomic_store(&l->slaves_least, slaves);
	if (slaves > atomic_load(&l->slaves_most))
		atomic_store(&l->slaves_most, slaves);
}

/* Handles a frame that was read. Returns whether it answers this cycle. */
static bool take_answer(struct loop *l, int64_t number, int64_t back_ns)
{
	int64_t cycle = frame_answer(&l->end.format, l->frame.data, (size_t)l->frame.length);

	if (cycle == FRAME_FOREIGN) {
		atomic_fetch_add_explicit(&l->foreign, 1, memory_order_relaxed);
		return false;
	}
	l->somebody = true;
	if (l->end.format.kind == FRAME_ETHERCAT)
		count_slaves(l);
	push_stamped(l, FRAME_RECEIVED, cycle, back_ns, far_end_arrival(&l->end, &l->frame));
	return cycle == number;
}

static void on_timer(int number)
{
	(void)number;
}

/* Makes the timer of this thread. Returns 0 or an errno. */
static int make_timer(struct loop *l)
{
	const struct sigaction action = {.sa_handler = on_timer};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};

	event.sigev_notify_thread_id = gettid();
	return sigaction(SIGALRM, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &l->timer) ? errno
												     : 0;
}

/* due_ns: 0: never. */
static void set_timer(struct loop *l, int64_t due_ns)
{
	const struct itimerspec due = {.it_value = ns_timespec(due_ns), .it_interval = ns_timespec(AGAIN_NS)};

	if (l->timer_ns != due_ns && !timer_settime(l->timer, TIMER_ABSTIME, &due, NULL))
		l->timer_ns = due_ns;
}

/* A far end that does not answer must not cost a whole CPU. */
static bool sleeps(const struct loop *l)
{
	return options.receive == RECEIVE_BLOCK || !l->answers;
}

/* Reads frames until the answer to this cycle comes or until due_ns, when the timer ends a sleep. Returns
 * whether it came. */
static bool receive(struct loop *l, int64_t number, int64_t due_ns)
{
	bool waits = due_ns && due_ns == l->timer_ns;

	for (;;) {
		int64_t now_ns;
		int error;

		far_end_receive(&l->end, waits, &l->frame);
		error = l->frame.length < 0 ? errno : 0;
		now_ns = clock_now_ns(CLOCK_MONOTONIC);
		push_sent(l, number);
		if (!error && take_answer(l, number, now_ns))
			return true;
		if (error && error != EAGAIN && error != EINTR)
			atomic_store_explicit(&l->receive_error, error, memory_order_relaxed);
		if (stopped())
			return false;
		if (now_ns >= due_ns && error != EINTR) {
			if (error == EAGAIN)
				push(l, FRAME_NONE, number, now_ns);
			return false;
		}
		waits = waits && now_ns < due_ns;
	}
}

/* Returns false if nothing answered for too long. */
static bool somebody_there(struct loop *l, int64_t number, int64_t now_ns)
{
	if (l->somebody || number < ALONE_CYCLES || now_ns - l->start_ns < ALONE_NS)
		return true;
	atomic_store(&l->nobody, true);
	return false;
}

/* Sleeps until the release. Returns the time after that. */
static int64_t wait_for_release(int64_t release_ns)
{
	const struct timespec due = ns_timespec(release_ns);
	int64_t now_ns;

	do {
		wait_until_monotonic(&due);
		now_ns = clock_now_ns(CLOCK_MONOTONIC);
	} while (commands_cut_short(release_ns, now_ns) && !stopped());
	return now_ns;
}

/* One cycle: sends, and waits for the answer. */
static void cycle(struct loop *l, int64_t number, int64_t send_ns)
{
	int64_t release_ns = l->start_ns + number * options.interval_ns;
	int error = far_end_send(&l->end, l->request);

	if (error) {
		atomic_store_explicit(&l->send_error, error, memory_order_relaxed);
		push(l, FRAME_NOT_SENT, number, send_ns);
		return;
	}
	atomic_store_explicit(&l->sent, true, memory_order_relaxed);
	l->pending += !l->end.stamps_error + l->end.hardware_stamps;
	l->sent_ns = send_ns;
	l->answers = receive(l, number, release_ns + options.interval_ns);
	if (!l->answers)
		l->unanswered_ns = release_ns;
	take_departures(l);
}

/* The measured path. */
static void run_until(struct loop *l, int64_t *number, int64_t end)
{
	while (*number < end) {
		int64_t release_ns = l->start_ns + *number * options.interval_ns, now_ns;

		frame_write(&l->end.format, *number, l->request);
		set_timer(l, sleeps(l) ? release_ns + options.interval_ns : 0);
		now_ns = wait_for_release(release_ns);
		if (stopped())
			return;
		if (now_ns - release_ns >= options.interval_ns) {
			push(l, FRAME_NOT_SENT, (*number)++, now_ns);
			continue;
		}
		cycle(l, *number, now_ns);
		if (stopped())
			return;
		(*number)++;
		if (!somebody_there(l, *number, now_ns))
			return;
	}
}

/* Reads the answers that may still come. */
static void receive_late(struct loop *l)
{
	int64_t due_ns = l->unanswered_ns ? l->unanswered_ns + options.timeout_ns + 1 : 0;

	set_timer(l, due_ns);
	receive(l, -1, due_ns);
}

static void drive(struct harness_thread *thread)
{
	struct loop *l = container_of(thread, struct loop, thread);
	const struct state *state = container_of(l, struct state, loop);
	int64_t number = 0;

	l->timer_error = make_timer(l);
	if (l->timer_error)
		return;
	run_until(l, &number, state->warm_up_count);
	usage_read(thread->schedstat, &thread->before);
	run_until(l, &number, l->total_count);
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = true;
	if (!stopped() && !atomic_load(&l->nobody))
		receive_late(l);
	set_timer(l, 0);
}

static int64_t read_offset_ns(void)
{
	int64_t offset_ns = 0, narrowest_ns = INT64_MAX;

	for (int i = 0; i < OFFSET_TRIES; i++) {
		int64_t before_ns = clock_now_ns(CLOCK_MONOTONIC);
		int64_t real_ns = clock_now_ns(CLOCK_REALTIME);
		int64_t width_ns = clock_now_ns(CLOCK_MONOTONIC) - before_ns;

		if (width_ns < narrowest_ns) {
			narrowest_ns = width_ns;
			offset_ns = real_ns - before_ns - width_ns / 2;
		}
	}
	return offset_ns;
}

static void feed_part(struct state *state, enum part part, const struct cycle *c, int64_t from_ns,
		      int64_t to_ns)
{
	series_feed_timed(&state->series[FIRST_PART + part], c->release_ns, to_ns - from_ns, state->j);
}

static void feed_parts(struct state *state, const struct cycle *c)
{
	int64_t outside_ns = cycle_outside_ns(c), between_ns = c->arrived_ns - c->departed_ns;
	bool hardware = state->loop.end.hardware_stamps;

	feed_part(state, WAKE_UP, c, c->release_ns, c->send_ns);
	/* The times are in this order, unless the clock of the time stamps was set meanwhile. */
	if (!c->departed_ns || !c->arrived_ns || c->departed_ns < c->send_ns ||
	    c->arrived_ns < c->departed_ns || c->back_ns < c->arrived_ns || (hardware && outside_ns < 0)) {
		state->not_split += c->number >= state->warm_up_count && c->back_ns;
		return;
	}
	if (c->number >= state->warm_up_count) {
		state->split++;
		device_clock_take(&state->device, c->number - state->warm_up_count, c->departed_ns,
				  c->arrived_ns);
	}
	feed_part(state, SEND, c, c->send_ns, c->departed_ns);
	feed_part(state, WIRE_AND_DEVICE, c, 0, hardware ? outside_ns : between_ns);
	if (hardware)
		series_feed_timed(&state->series[CARD], c->release_ns, between_ns - outside_ns, state->j);
	feed_part(state, RECEIVE, c, c->arrived_ns, c->back_ns);
}

static void feed_jitter(struct state *state, const struct cycle *c)
{
	if (!c->departed_ns)
		return;
	if (state->departed_ns && state->departed_number == c->number - 1)
		series_feed_timed(&state->series[JITTER], c->release_ns,
				  c->departed_ns - state->departed_ns - options.interval_ns, state->j);
	state->departed_ns = c->departed_ns;
	state->departed_number = c->number;
}

/* Takes a finished cycle. */
static void feed(void *to, const struct cycle *c)
{
	struct state *state = to;
	struct series *round_trip = &state->series[ROUND_TRIP];

	if (c->back_ns)
		series_feed_timed(round_trip, c->release_ns, c->back_ns - c->release_ns, state->j);
	else
		series_miss_timed(round_trip, c->release_ns,
				  c->send_ns ? options.timeout_ns : c->noted_ns - c->release_ns, state->j);
	if (!c->send_ns)
		return;
	feed_parts(state, c);
	feed_jitter(state, c);
}

/* Takes the events. Time stamps are on CLOCK_REALTIME, and lose their use if that was set meanwhile. */
static bool drain(struct harness *h, struct json *j)
{
	struct state *state = h->state;
	struct loop *l = &state->loop;
	bool done = atomic_load(&l->thread.done);
	int64_t offset_ns = read_offset_ns(), moved_ns = offset_ns - state->offset_ns;
	bool set = moved_ns > STEP_NS || moved_ns < -STEP_NS;
	size_t slot;

	state->j = j;
	state->clock_steps += set;
	state->offset_ns = offset_ns;
	while (slot_ring_pop(&l->ring, &slot)) {
		struct frame_event event = l->events[slot];

		if (event.stamp_ns)
			event.stamp_ns = set ? 0 : event.stamp_ns - offset_ns;
		cycles_take(&state->cycles, &event);
	}
	cycles_finish(&state->cycles);
	return !done;
}

static void write_values(const struct state *state, struct json *j)
{
	const struct loop *l = &state->loop;
	const struct cycles *c = &state->cycles;
	int64_t all = 0;

	stream_result(j, "path");
	json_str(j, "path", options.path);
	json_close(j, '}');
	json_open(j, "values", '{');
	for (int i = 0; i < CYCLE_OUTCOMES; i++)
		all += c->counts[i];
	json_int(j, "cycles", all);
	for (int i = 0; i < CYCLE_OUTCOMES; i++)
		json_int(j, outcome_names[i], c->counts[i]);
	json_int(j, "duplicate", c->others.duplicate);
	json_int(j, "reordered", c->others.reordered);
	json_int(j, "after-timeout", c->others.after_timeout);
	json_int(j, "foreign", c->foreign + atomic_load(&l->foreign));
	json_int(j, "dropped", far_end_dropped(&l->end));
	json_int(j, "split", state->split);
	json_int(j, "not-split", state->not_split);
	if (l->end.interface[0])
		json_str(j, "interface", l->end.interface);
	else
		json_null(j, "interface");
	if (l->end.format.kind == FRAME_ETHERCAT) {
		json_int(j, "slaves-least", atomic_load(&l->slaves_least));
		json_int(j, "slaves-most", atomic_load(&l->slaves_most));
	}
	json_str(j, "stamps",
		 l->end.hardware_stamps ? "hardware"
		 : l->end.stamps_error	? "none"
					: "software");
	json_int(j, "frame-bytes", (int64_t)l->end.format.size);
	stream_result_end(j);
}

/* Writes the sawtooth. */
static void write_beat(const struct device_period *found, struct json *j)
{
	for (int i = 0; i < BEAT_PARTS; i++) {
		const struct beat_part *part = &found->parts[i];

		if (!part->count)
			continue;
		stream_result(j, "beat");
		json_int(j, "part", i + 1);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_real(j, "cycles-after-slip", (i + 0.5) / BEAT_PARTS * found->beat_cycles);
		json_int(j, "cycles", part->count);
		json_int(j, "min-ns", part->min_ns);
		json_int(j, "mean-ns", part->sum_ns / part->count);
		json_int(j, "max-ns", part->max_ns);
		stream_result_end(j);
	}
}

/* Writes the period of a device that answers by a clock of its own, and where the two loops slipped. */
static void write_device_clock(const struct state *state, struct json *j)
{
	struct device_period found;

	if (!device_clock_find(&state->device, &found))
		return;
	stream_result(j, "device-clock");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_int(j, "cycles", found.cycles);
	json_real(j, "period-ns", found.period_ns);
	json_int(j, "per-interval", found.per_interval);
	json_real(j, "concentration", found.concentration);
	json_real(j, "waiting-share", found.waiting_share);
	json_real(j, "beats", found.beats);
	json_int(j, "slips", found.slip_count);
	stream_result_end(j);
	for (int i = 0; i < found.slip_count && i < DEVICE_SLIPS; i++) {
		stream_result(j, "slip");
		json_int(j, "slip", i + 1);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "cycle", found.slips[i]);
		stream_result_end(j);
	}
	write_beat(&found, j);
}

static void conclude(struct harness *h, struct json *j)
{
	const struct state *state = h->state;
	const int64_t *counts = state->cycles.counts;
	const struct other_frames *others = &state->cycles.others;
	int64_t own = counts[CYCLE_SENT_LATE] + counts[CYCLE_READ_LATE] + counts[CYCLE_NOT_SENT];
	int64_t foreign = state->cycles.foreign + atomic_load(&state->loop.foreign);
	int64_t dropped = far_end_dropped(&state->loop.end);
	int64_t received = state->split + state->not_split;
	int error = atomic_load(&state->loop.send_error);

	write_values(state, j);
	write_device_clock(state, j);
	if (own || dropped)
		stream_mark(
			j, "own-late",
			own + dropped > counts[CYCLE_ANSWERED] / 100 ? SEVERITY_DOUBTFUL : SEVERITY_NOTE,
			ROUND_TRIP,
			"this machine itself was late: %lld frames were sent late, %lld answers were read late, "
			"and %lld frames were not sent%s%s; its socket had no room for %lld received frames; "
			"these cycles say nothing about the far end",
			(long long)counts[CYCLE_SENT_LATE], (long long)counts[CYCLE_READ_LATE],
			(long long)counts[CYCLE_NOT_SENT], error ? ", also because of: " : "",
			error ? strerror(error) : "", (long long)dropped);
	if (others->duplicate || foreign)
		stream_mark(
			j, "other-frames", SEVERITY_NOTE, ROUND_TRIP,
			"%lld answers came twice, and %lld frames did not answer this run: something repeats "
			"frames, or uses the same path",
			(long long)others->duplicate, (long long)foreign);
	if (state->not_split)
		stream_mark(
			j, "stamps-missing", SEVERITY_NOTE, ROUND_TRIP,
			"%lld of %lld answers are not split into parts, because %s did not give usable time stamps%s%s%s",
			(long long)state->not_split, (long long)received,
			state->loop.end.hardware_stamps
				? "the network card, which is set to make them (hwstamp_ctl),"
				: "the kernel",
			state->loop.end.interface[0] ? " on " : "", state->loop.end.interface,
			state->clock_steps ? "; the system's time was set meanwhile" : "");
}

static int check(struct harness *h)
{
	(void)h;
	if (!options.path)
		return usage_error("give --path, such as icmp:192.168.1.5 or udp:192.168.1.5:7");
	if (options.timeout_ns < options.interval_ns)
		return usage_error("--timeout-ns %lld is shorter than a cycle; give at least --interval-ns",
				   (long long)options.timeout_ns);
	if (options.timeout_ns / options.interval_ns > 65536)
		return usage_error("--timeout-ns %lld is more than 65536 cycles; give a shorter one",
				   (long long)options.timeout_ns);
	if (harness_options.count > INT64_MAX / 4 / options.interval_ns)
		return usage_error("this many cycles would take more than 70 years; give fewer");
	return 0;
}

static int64_t divide_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

static bool make_loop(struct state *state, int cpu)
{
	struct loop *l = &state->loop;
	int64_t counted = harness_options.count ? harness_options.count
						: divide_up(harness_options.duration_ns, options.interval_ns);

	state->warm_up_count = divide_up(harness_options.warm_up_ns, options.interval_ns);
	l->total_count = counted ? state->warm_up_count + counted : INT64_MAX;
	l->answers = true;
	l->events = memory_get(ROOM * sizeof(*l->events));
	slot_ring_init(&l->ring, ROOM);
	l->thread.measure = drive;
	l->thread.cpu = cpu;
	l->thread.policy = (enum policy)harness_options.policy;
	l->thread.priority = (int)harness_options.priority;
	return l->events != NULL;
}

static bool make_series(struct harness *h)
{
	struct state *state = h->state;

	for (unsigned int i = 0; i < ALL_SERIES; i++) {
		struct series *s = &state->series[i];

		s->id = i;
		s->cpu = state->loop.thread.cpu;
		s->metric = i == JITTER ? "jitter" : "response";
		if (i >= FIRST_PART && i < JITTER)
			s->labels[0] = (struct label){"segment", part_names[i - FIRST_PART]};
		if (i == CARD)
			s->labels[0] = (struct label){"segment", "card"};
		state->all_series[i] = s;
		state->measurers[i] = &state->loop.thread;
	}
	h->series = state->all_series;
	h->measurers = state->measurers;
	h->series_count = state->loop.end.hardware_stamps ? ALL_SERIES : CARD;
	return series_take_early(&state->series[JITTER]);
}

static int prepare(struct harness *h)
{
	struct state *state = h->state;
	int cpu = cpuset_next(&h->cpus->measured, 0), status;

	/* One thread measures, so the others may run anywhere else. */
	cpuset_clear(&h->cpus->measured);
	cpuset_add(&h->cpus->measured, (unsigned int)cpu);
	state->loop.end = (struct far_end){.path = options.path,
					   .size = (size_t)options.size,
					   .priority = options.socket_priority,
					   .busy_poll_us = options.busy_poll_us};
	status = far_end_open(&state->loop.end);
	if (status)
		return status;
	if (!make_loop(state, cpu) || !make_series(h) ||
	    !device_clock_make(&state->device, options.interval_ns))
		return harness_no_memory();
	state->threads[0] = &state->loop.thread;
	h->threads = state->threads;
	h->thread_count = 1;
	state->cycles = (struct cycles){.interval_ns = options.interval_ns,
					.timeout_ns = options.timeout_ns,
					.sent_late_ns = options.interval_ns / 2,
					.stamped = !state->loop.end.stamps_error,
					.hardware = state->loop.end.hardware_stamps,
					.warm_up_count = state->warm_up_count,
					.finished = feed,
					.to = state};
	return cycles_make(&state->cycles) ? 0 : harness_no_memory();
}

static int nothing_sent(int error)
{
	return error_line(
		STATUS_CANNOT_MEASURE, "path", "cannot send on %.100s: %s%s", options.path, strerror(error),
		error == EMSGSIZE ? "; the interface's MTU is shorter than the frame: give a smaller --size"
				  : "; check that the interface is up (`ip link`)");
}

static int no_answer(const struct state *state)
{
	int error = atomic_load(&state->loop.receive_error);

	if (!error)
		error = atomic_load(&state->loop.send_error);
	return error_line(
		STATUS_CANNOT_MEASURE, "no-answer",
		"nobody answers on %.100s%s%s%s: check that the far end is on%s, that it returns these "
		"frames%s, and that no firewall drops them",
		options.path, error ? " (" : "", error ? strerror(error) : "", error ? ")" : "",
		state->loop.end.format.kind == FRAME_ETHERNET ? " and has this MAC address" : "",
		options.size ? ", also of this size (--size)" : "");
}

static int run(struct harness *h)
{
	struct state *state = h->state;
	int64_t measured_ns =
		state->loop.total_count == INT64_MAX
			? INT64_MAX
			: (state->loop.total_count - state->warm_up_count) * options.interval_ns;
	int64_t start_ns = clock_now_ns(CLOCK_MONOTONIC) + LEAD_NS;
	int send_error;

	state->loop.start_ns = state->cycles.start_ns = start_ns;
	state->offset_ns = read_offset_ns();
	for (unsigned int i = 0; i < h->series_count; i++)
		series_timed(&state->series[i], start_ns, state->warm_up_count * options.interval_ns,
			     measured_ns);
	harness_go(h);
	harness_watch(h, measured_ns == INT64_MAX
				 ? INT64_MAX
				 : state->loop.total_count * options.interval_ns + options.timeout_ns);
	harness_drain(h, drain, DRAIN_NS);
	cycles_finish_all(&state->cycles, atomic_load(&harness_shared.stop));
	if (state->loop.timer_error)
		return error_line(STATUS_CANNOT_MEASURE, "timer", "cannot make a timer: %s",
				  strerror(state->loop.timer_error));
	send_error = atomic_load(&state->loop.send_error);
	if (send_error && !atomic_load(&state->loop.sent))
		return nothing_sent(send_error);
	if (atomic_load(&state->loop.nobody) ||
	    (state->cycles.answered < 0 && state->cycles.counts[CYCLE_LOST] > 0))
		return no_answer(state);
	state->series[ROUND_TRIP].lost = atomic_load(&state->loop.not_kept);
	return harness_finish(h, harness_options.count ? "count" : "duration");
}

/* Returns the thread with the loop, for the whole cycle only. */
static bool explained(const struct harness *h, const struct series *s, struct explained *who)
{
	const struct state *state = h->state;

	if (s->id != ROUND_TRIP)
		return false;
	*who = (struct explained){.cpu = state->loop.thread.cpu, .tid = state->loop.thread.tid};
	return true;
}

static int verb_path(int argc, char **argv)
{
	static struct harness harness = {
		.table = table,
		.state_size = sizeof(struct state),
		.hog_percent = 101, /* of a thread that looks for answers all the time */
		.check = check,
		.prepare = prepare,
		.run = run,
		.conclude = conclude,
		.explained = explained,
	};

	return harness_run(&harness, argc, argv);
}

PROBE("path", verb_path, "round trips of a control loop to a device that only answers")
