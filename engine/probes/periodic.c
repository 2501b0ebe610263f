// SPDX-License-Identifier: MIT
/*
 * periodic: a task toggles a line each half-period; how late each edge is and how far each half-period is
 * from the nominal one, as the task itself and as the other end of the line sees it (paper rows B1 and A3;
 * Brown & Martin 2010, sec. 2.2 and 3.5; Adam et al. 2021, algorithm A2).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/commands.h"
#include "base/error.h"
#include "base/series.h"
#include "base/stream.h"
#include "frame/frame.h"
#include "frame/partner.h"
#include "paths/path.h"
#include "paths/roles.h"
#include "paths/observer.h"
#include "rt/clock.h"
#include "rt/memory.h"
#include "rt/wait.h"
#include "verbs.h"

#define ROOM 32768
#define LEAD_NS (NS_PER_S / 50) /* from `go` to the first edge: every task waits by then */
#define DRAIN_MOST_NS (NS_PER_S / 10)
#define AFTER_NS (NS_PER_S / 20) /* for the last edge to arrive */

enum timer { TIMER_NANOSLEEP, TIMER_TIMERFD };
enum which { SELF_LATENCY, SELF_JITTER, OTHER_LATENCY, OTHER_JITTER, SERIES };

static const char *const timer_names[] = {"nanosleep", "timerfd", NULL};

static struct {
	int timer;
	int64_t period_ns;
} wanted = {.period_ns = 7071000};

static const struct option_entry table[] = {
	ROLES_OPTION_PATH,
	ROLES_OPTION_ROLE("of this engine; the slave observes"),
	{.name = "period-ns",
	 .kind = OPTION_INT,
	 .value = &wanted.period_ns,
	 .min = 2000,
	 .max = 3600 * NS_PER_S,
	 .help = "of the signal; the line is toggled each half of it (7071000)"},
	{.name = "timer",
	 .kind = OPTION_CHOICE,
	 .value = &wanted.timer,
	 .choices = timer_names,
	 .help = "waits by"},
	FRAME_OPTION_CPU,
	ROLES_OPTION_SLAVE_CPU,
	FRAME_OPTIONS_MEASURING("half-periods in the measured phase, in place of a duration"),
};

/* An edge: its number, from 1, which release it was for, and when it was out. */
struct toggle {
	int64_t release, edge, toggled_ns;
};

static struct {
	/* the task's own */
	_Alignas(CACHE_LINE) struct ring ring; /* of indices of slots, of which there are twice as many */
	struct toggle *slots;
	size_t next_slot;
	int64_t release; /* the one that is waited for */
	int64_t expired; /* of the timer descriptor */
	int64_t edges;
	int error;

	/* constant */
	struct path_end *end;
	int timer_fd;
	int64_t half_ns, start_ns, warm_up_count, total_count, end_ns;
	struct frame_thread thread;
} task;

/* What the drain knows of the edges that were made: their releases' times, for those who see them later. */
static struct {
	int64_t position, last_ns, last_edge;
	int64_t releases[ROOM];
} made;

static struct {
	bool holding;
	struct sight held, last;
	int64_t seen, doubled, lost;
} sights;

static struct path_end ends[2];
static struct partner partner;
static struct observer *observer;
static struct series
	*every; /* here and in memory only if this probe runs: what is static is locked in every one */
static struct series *shown[SERIES];
static struct frame_thread *threads[1];
static struct frame_thread *measurers[SERIES];
static char died[96];

/* Until the release that is next, or a signal. */
static inline void wait_release(int64_t release_ns, bool by_timerfd)
{
	const struct timespec release = ns_timespec(release_ns);
	uint64_t expirations;

	if (!by_timerfd) {
		wait_until_monotonic(&release);
		return;
	}
	/* A release that was slept through has expired too: it is read and not looked at. */
	while (task.expired <= task.release && read(task.timer_fd, &expirations, sizeof(expirations)) > 0)
		task.expired += (int64_t)expirations;
}

/* The measured path: wait, toggle, read the clock, store. */
static inline __attribute__((always_inline)) void toggle_until(int64_t end, bool by_timerfd)
{
	while (task.release < end) {
		int64_t release_ns = task.start_ns + task.release * task.half_ns, now_ns, missed;
		size_t slot = task.next_slot & (2 * ROOM - 1);

		wait_release(release_ns, by_timerfd);
		if (__builtin_expect(atomic_load_explicit(&frame_shared.stop, memory_order_relaxed), 0))
			return;
		if (commands_cut_short(release_ns, clock_now_ns(CLOCK_MONOTONIC)))
			continue;
		task.error = task.end->kind->send(task.end, ++task.edges);
		now_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (__builtin_expect(task.error, 0))
			return;
		task.slots[slot] = (struct toggle){task.release, task.edges, now_ns};
		if (ring_push(&task.ring, (int64_t)slot))
			task.next_slot++;
		missed = series_missed_after(now_ns - release_ns, task.half_ns);
		task.release += 1 + missed;
		if (task.release > end)
			task.release = end;
	}
}

static void run_phase(int64_t end)
{
	if (task.error)
		return;
	if (wanted.timer == TIMER_TIMERFD)
		toggle_until(end, true);
	else
		toggle_until(end, false);
}

static void toggle_all(struct frame_thread *thread)
{
	const struct itimerspec each = {.it_value = ns_timespec(task.start_ns),
					.it_interval = ns_timespec(task.half_ns)};

	if (wanted.timer == TIMER_TIMERFD)
		timerfd_settime(task.timer_fd, TFD_TIMER_ABSTIME, &each, NULL);
	run_phase(task.warm_up_count);
	usage_read(thread->schedstat, &thread->before);
	run_phase(task.total_count);
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = true;
	if (task.end->kind == &path_udp && roles_wanted.role == PATH_MASTER)
		task.end->kind->send(task.end, EDGE_OVER);
}

static void observe_thread(struct frame_thread *thread)
{
	usage_read(thread->schedstat, &thread->before);
	observer_watch(observer);
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = true;
}

static int prepare(struct frame_thread *thread)
{
	(void)thread;
	if (wanted.timer != TIMER_TIMERFD)
		return 0;
	task.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	return task.timer_fd < 0 ? errno : 0;
}

static void feed_toggle(const struct toggle *toggle, struct json *j)
{
	int64_t release_ns = task.start_ns + toggle->release * task.half_ns;
	int64_t latency_ns = toggle->toggled_ns - release_ns;

	if (toggle->release > made.position)
		series_feed(&every[SELF_LATENCY], SAMPLE_LOST(toggle->release - made.position), j);
	series_feed(&every[SELF_LATENCY], latency_ns < 0 ? SAMPLE_IMPOSSIBLE : latency_ns, j);
	if (made.last_edge && toggle->edge == made.last_edge + 1)
		series_feed_timed(&every[SELF_JITTER], release_ns,
				  toggle->toggled_ns - made.last_ns - task.half_ns, j);
	made.position = toggle->release + 1 + series_missed_after(latency_ns, task.half_ns);
	made.last_ns = toggle->toggled_ns;
	while (made.last_edge < toggle->edge - 1)
		made.releases[++made.last_edge % ROOM] = 0; /* it could not be kept */
	made.last_edge = toggle->edge;
	made.releases[made.last_edge % ROOM] = release_ns;
}

/* One edge as the other end saw it; of edges that were taken at once, or after one that was lost, no
 * half-period is known. */
static void feed_sight(const struct sight *sight, struct json *j)
{
	bool known = roles_wanted.role == PATH_BOTH && made.last_edge - sight->edges < ROOM &&
		     made.releases[sight->edges % ROOM];
	int64_t time_ns = known ? made.releases[sight->edges % ROOM] : sight->seen_ns;
	int64_t between = sights.seen ? sight->edges - sights.last.edges : 1;

	if (known)
		series_feed_timed(&every[OTHER_LATENCY], time_ns, sight->seen_ns - time_ns, j);
	if (sights.seen && between == 1)
		series_feed_timed(&every[OTHER_JITTER], time_ns,
				  sight->seen_ns - sights.last.seen_ns - task.half_ns, j);
	sights.doubled += sight->at_once - 1;
	if (between > (int64_t)sight->at_once)
		sights.lost += between - sight->at_once;
	sights.seen += sight->at_once;
	sights.last = *sight;
}

static void take_sights(struct json *j)
{
	int64_t slot;

	for (;;) {
		if (!sights.holding) {
			if (!ring_pop(&observer->ring, &slot, 1))
				return;
			sights.held = observer->slots[slot];
			sights.holding = true;
		}
		/* It may be seen before who made it has noted it. */
		if (roles_wanted.role == PATH_BOTH && sights.held.edges > made.last_edge)
			return;
		feed_sight(&sights.held, j);
		sights.holding = false;
	}
}

static struct frame frame;

static bool take(struct json *j)
{
	static int64_t slots[1024];
	bool done = atomic_load(&task.thread.done);
	size_t got;

	while ((got = ring_pop(&task.ring, slots, sizeof(slots) / sizeof(slots[0])))) {
		for (size_t i = 0; i < got; i++)
			feed_toggle(&task.slots[slots[i]], j);
	}
	if (observer)
		take_sights(j);
	if (roles_wanted.role == PATH_BOTH && !partner_lives(&partner, died, sizeof(died)))
		frame_end_by(&frame, "slave-died");
	return !done;
}

static bool take_alone(struct json *j)
{
	bool done = atomic_load(&task.thread.done);
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
	struct series *s = &every[OTHER_JITTER];

	take_sights(j);
	s->reached_ns = now_ns;
	if (!done && now_ns >= task.end_ns)
		frame_end_by(&frame, "duration");
	else if (!done && (atomic_load(&observer->over) ||
			   (frame_wanted.count &&
			    s->total.count + (s->measuring ? s->window.count : 0) >= frame_wanted.count)))
		frame_end_by(&frame, "count");
	return !done;
}

static void conclude(struct json *j)
{
	if (roles_wanted.role != PATH_SLAVE) {
		stream_result(j, "signal");
		json_str(j, "role", "self");
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "edges", task.edges);
		stream_result_end(j);
	}
	if (roles_wanted.role != PATH_MASTER) {
		stream_result(j, "signal");
		json_str(j, "role", "observer");
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "edges", sights.seen);
		json_int(j, "double-edge", sights.doubled);
		json_int(j, "lost", sights.lost);
		stream_result_end(j);
	}
	if (roles_wanted.role == PATH_SLAVE && !sights.seen)
		stream_mark(j, "no-stimulus", SEVERITY_INVALID, 0,
			    "no edge came on %s: is the master running, and is its line this one?",
			    roles_wanted.path);
	if (died[0])
		stream_mark(j, "slave-died", SEVERITY_INVALID, -1, "the observer %s while it was needed",
			    died);
}

static int check(void)
{
	task.half_ns = wanted.period_ns / 2;
	if (wanted.period_ns % 2)
		return error_line(STATUS_USAGE, "interval",
				  "a period of %" PRId64 " ns has no half in whole ns; give an even number",
				  wanted.period_ns);
	if (frame_wanted.count && frame_wanted.count > INT64_MAX / 4 / task.half_ns)
		return error_line(STATUS_USAGE, "usage", "that many half-periods take more than 70 years");
	return 0;
}

static void make_series(struct frame *f)
{
	static const char *const metrics[] = {"latency", "jitter", "latency", "jitter"};
	bool wants[] = {roles_wanted.role != PATH_SLAVE, roles_wanted.role != PATH_SLAVE,
			roles_wanted.role == PATH_BOTH, roles_wanted.role != PATH_MASTER};

	for (unsigned int i = 0; i < SERIES; i++) {
		struct series *s = &every[i];

		if (!wants[i])
			continue;
		s->id = f->series_count;
		s->cpu = i < OTHER_LATENCY || !partner.pid ? task.thread.cpu : partner.cpu;
		s->metric = metrics[i];
		s->labels[0] = (struct label){"role", i < OTHER_LATENCY ? "self" : "observer"};
		if (i != SELF_LATENCY)
			s->negatives = memory_get(sizeof(*s->negatives));
		measurers[f->series_count] =
			i == SELF_LATENCY || roles_wanted.role == PATH_SLAVE ? &task.thread : NULL;
		shown[f->series_count++] = s;
	}
}

static int make(struct frame *f)
{
	int cpu[2], status = roles_cpus(f->cpus, cpu);
	bool alone = roles_wanted.role == PATH_SLAVE;
	int64_t *indices;

	every = memory_get(SERIES * sizeof(*every));
	if (!status && !every)
		status = frame_no_memory();
	if (!status)
		status = path_open(roles_wanted.path, (enum path_role)roles_wanted.role, false, ends);
	if (status)
		return status;
	if (roles_wanted.role != PATH_MASTER) {
		observer = observer_new(&ends[PATH_SLAVE]);
		if (!observer)
			return frame_no_memory();
	}
	if (roles_wanted.role == PATH_BOTH)
		status = partner_start(&partner, cpu[PATH_SLAVE], observer_watch, observer);
	if (status)
		return status;
	indices = memory_get(ROOM * sizeof(*indices));
	task.slots = memory_get((size_t)2 * ROOM * sizeof(*task.slots));
	if (!indices || !task.slots)
		return frame_no_memory();
	ring_init(&task.ring, indices, ROOM);
	task.end = &ends[PATH_MASTER];
	task.thread.cpu = cpu[alone ? PATH_SLAVE : PATH_MASTER];
	task.thread.policy = (enum policy)frame_wanted.policy;
	task.thread.priority = (int)frame_wanted.priority;
	task.thread.prepare = prepare;
	task.thread.measure = alone ? observe_thread : toggle_all;
	threads[0] = &task.thread;
	make_series(f);
	return 0;
}

static void set_times(void)
{
	int64_t measured_ns = frame_wanted.duration_ns ? frame_wanted.duration_ns
			      : frame_wanted.count     ? frame_wanted.count * task.half_ns
						       : INT64_MAX;
	struct series *grid = &every[SELF_LATENCY];

	task.start_ns = clock_now_ns(CLOCK_MONOTONIC) + LEAD_NS;
	task.warm_up_count = (frame_wanted.warm_up_ns + task.half_ns - 1) / task.half_ns;
	task.total_count = measured_ns == INT64_MAX
				   ? INT64_MAX
				   : task.warm_up_count + (measured_ns + task.half_ns - 1) / task.half_ns;
	task.end_ns =
		measured_ns == INT64_MAX || (roles_wanted.role == PATH_SLAVE && !frame_wanted.duration_ns)
			? INT64_MAX
			: task.start_ns + task.warm_up_count * task.half_ns + measured_ns;
	for (int i = 0; i < SERIES; i++)
		series_timed(&every[i], task.start_ns, task.warm_up_count * task.half_ns,
			     roles_wanted.role == PATH_SLAVE && !frame_wanted.duration_ns ? INT64_MAX
											  : measured_ns);
	*grid = (struct series){.id = grid->id,
				.cpu = grid->cpu,
				.metric = grid->metric,
				.labels = {grid->labels[0]},
				.samples = grid->samples,
				.interval_ns = task.half_ns,
				.start_ns = task.start_ns,
				.warm_up_count = task.warm_up_count,
				.total_count = task.total_count,
				.measured_ns = measured_ns};
}

static int run(struct frame *f)
{
	int64_t span_ns = ROOM / 8 * task.half_ns;
	bool alone = roles_wanted.role == PATH_SLAVE;
	int error;

	set_times();
	frame_go(f);
	frame_watch(f, task.end_ns == INT64_MAX ? INT64_MAX : task.end_ns - task.start_ns);
	frame_drain(f, alone ? take_alone : take, span_ns < DRAIN_MOST_NS ? span_ns : DRAIN_MOST_NS);
	if (observer && !alone) {
		clock_pause_ns(AFTER_NS);
		take(&f->j);
	}
	partner_end(&partner);
	error = task.error ? task.error : observer ? atomic_load(&observer->error) : 0;
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "path", "%.100s failed while it was measured: %s",
				  roles_wanted.path, strerror(error));
	if (observer)
		every[OTHER_JITTER].lost = every[OTHER_LATENCY].lost = atomic_load(&observer->not_kept);
	return frame_finish(f, frame_wanted.count ? "count" : "duration");
}

static struct frame frame = {
	.name = "periodic",
	.table = table,
	.options = sizeof(table) / sizeof(table[0]),
	.check = check,
	.make = make,
	.run = run,
	.conclude = conclude,
	.threads = threads,
	.thread_count = 1,
	.series = shown,
	.measurers = measurers,
};

int verb_periodic(int argc, char **argv)
{
	int status = frame_run(&frame, argc, argv);

	partner_end(&partner);
	return status;
}
