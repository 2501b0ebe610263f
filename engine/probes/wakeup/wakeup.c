// SPDX-License-Identifier: MIT
/*
 * wakeup: one measuring thread for each CPU sleeps until an absolute time, reads the clock and stores
 * actual - expected (Delgado & Choi 2020, algorithm 1).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/commands.h"
#include "base/container_of.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/ring.h"
#include "base/series.h"
#include "base/verbs.h"
#include "harness/harness.h"
#include "probes/wakeup/kernel_space.h"
#include "probes/wakeup/options.h"
#include "rt/runtime.h"
#include "rt/wait.h"

#define RING_MAX 65536
#define RING_MIN 1024
#define RING_SPAN_NS (4 * NS_PER_S)
#define DRAIN_NS (NS_PER_S / 5)
#define LEAD_NS (NS_PER_S / 50)	     /* from `go` to the first release; by then, every thread waits */
#define RUNTIME_NS (NS_PER_S / 5000) /* an activation's budget under SCHED_DEADLINE */
#define ROOM_NS (NS_PER_S / 5)	     /* how often to check whether a full ring has room again */

enum timer { TIMER_NANOSLEEP, TIMER_TIMERFD };
enum phase { PHASE_RANDOM, PHASE_FIXED };

static const char *const timer_names[] = {"nanosleep", "timerfd", NULL};
static const char *const phase_names[] = {"random", "fixed", NULL};

struct wakeup_options wakeup_options = {.interval_ns = 1000000, .window_ns = SERIES_WINDOW_NS};

static const struct option_entry table[] = {
	{.shared = harness_option_cpu},
	{.shared = harness_option_space, .value = &wakeup_options.space, .help = "where the thread runs"},
	{.name = "interval-ns",
	 .kind = OPTION_INT,
	 .value = &wakeup_options.interval_ns,
	 .min = INT64_MIN,
	 .max = 3600 * NS_PER_S,
	 .help = "time between two releases"},
	{.shared = harness_option_policy, .choices = policy_all_names},
	{.shared = harness_option_priority},
	{.name = "timer",
	 .kind = OPTION_CHOICE,
	 .value = &wakeup_options.timer,
	 .choices = timer_names,
	 .only = {&wakeup_options.space, SPACE_USER},
	 .help = "how the thread waits for its release"},
	{.name = "phase",
	 .kind = OPTION_CHOICE,
	 .value = &wakeup_options.phase,
	 .choices = phase_names,
	 .only = {&wakeup_options.space, SPACE_USER},
	 .help = "when the first release comes, relative to the tick and the other CPUs"},
	{.shared = harness_option_duration},
	{.shared = harness_option_count,
	 .help = "number of activations on each CPU in the measured phase, instead of a duration"},
	{.shared = harness_option_warm_up},
	{.name = "stop-at-ns",
	 .kind = OPTION_INT,
	 .value = &wakeup_options.stop_at_ns,
	 .min = 0,
	 .max = INT64_MAX / 4,
	 .help = "end the measurement at the first latency above this; 0: never"},
	{.name = "window-ns",
	 .kind = OPTION_INT,
	 .value = &wakeup_options.window_ns,
	 .min = NS_PER_S / 100,
	 .max = 3600 * NS_PER_S,
	 .help = "length of one window, for which the stream has a histogram"},
	{.name = "trace-instance",
	 .kind = OPTION_TEXT,
	 .value = &wakeup_options.instance,
	 .only = {&wakeup_options.space, SPACE_KERNEL},
	 .help = "existing instance of tracefs for the timerlat tracer"},
	{.shared = harness_options_machine},
	{.shared = explain_options_table, .only = {&wakeup_options.space, SPACE_USER}},
	{0},
};

/* A measuring thread. The first part is the thread's own while it measures; others read the rest before
   and after. */
struct task {
	struct ring ring;

	_Alignas(CACHE_LINE) int64_t position; /* finished activations, including missed ones */
	int64_t pending_lost;
	/* a latency that reaches this is examined: missed activations, the threshold, impossible values */
	uint64_t limit_ns;

	int timer_fd;
	int64_t start_ns, warm_up_count, total_count;
	uint64_t usual_limit_ns;
	struct harness_thread thread;
	struct series series;
};

struct state {
	struct task *tasks[PROBE_CPUS_MAX];
	struct harness_thread *threads[PROBE_CPUS_MAX];
	struct series *series[PROBE_CPUS_MAX];
	unsigned int task_count;
};

static struct task *task_of(struct harness_thread *thread)
{
	return container_of(thread, struct task, thread);
}

/*
 * The rare half of an activation, when the sample reaches the limit or the ring was full. Returns how many
 * activations it finishes; 0: it is still to come. While activations wait to be reported as lost, the
 * limit is 0, so that no activation overtakes them.
 */
static __attribute__((noinline)) int64_t slow_path(struct task *t, int64_t latency)
{
	int64_t missed, left = t->total_count - t->position - 1;

	if (commands_cut_short(0, latency))
		return 0;
	if (t->pending_lost) {
		if (ring_push(&t->ring, SAMPLE_LOST(t->pending_lost))) {
			t->pending_lost = 0;
			t->limit_ns = t->usual_limit_ns;
		}
	}
	if (latency < 0) {
		bool taken = RUNTIME_FIRES_EARLY && latency >= SAMPLE_EARLIEST;

		if (t->pending_lost || !ring_push(&t->ring, taken ? latency : SAMPLE_IMPOSSIBLE)) {
			t->pending_lost++;
			t->limit_ns = 0;
		}
		return 1;
	}
	if (wakeup_options.stop_at_ns && latency > wakeup_options.stop_at_ns &&
	    t->position >= t->warm_up_count) {
		atomic_store(&harness_shared.over_threshold, true);
		atomic_store(&harness_shared.stop, true);
	}
	missed = series_missed_after(latency, wakeup_options.interval_ns);
	if (missed > left)
		missed = left;
	if (t->pending_lost || !ring_push(&t->ring, latency)) {
		t->pending_lost += 1 + missed;
		t->limit_ns = 0;
	}
	return 1 + missed;
}

static inline void wait_until(const struct task *t, const struct timespec *next, bool by_timerfd)
{
	if (by_timerfd) {
		const struct itimerspec once = {.it_value = *next};
		uint64_t expirations;

		/* Cobalt refuses a time that has passed; Linux's timer expires at once. */
		if (timerfd_settime(t->timer_fd, TFD_TIMER_ABSTIME, &once, NULL) && RUNTIME_IS_COKERNEL)
			return;
		if (read(t->timer_fd, &expirations, sizeof(expirations)) < 0)
			return; /* interrupted: the stop flag is set */
		return;
	}
	wait_until_monotonic(next);
}

/* The measured path: waits, reads the clock, stores. Ends at activation `end`, or at the stop flag. */
static inline __attribute__((always_inline)) void measure(struct task *t, int64_t end, bool by_timerfd)
{
	const time_t interval_s = (time_t)(wakeup_options.interval_ns / NS_PER_S);
	const long interval_rest_ns = (long)(wakeup_options.interval_ns % NS_PER_S);
	struct timespec next = ns_timespec(t->start_ns + t->position * wakeup_options.interval_ns), now;
	int64_t left = end - t->position;

	while (left > 0) {
		int64_t latency;

		wait_until(t, &next, by_timerfd);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (__builtin_expect(atomic_load_explicit(&harness_shared.stop, memory_order_relaxed), 0))
			break;
		latency = (int64_t)(now.tv_sec - next.tv_sec) * NS_PER_S + (now.tv_nsec - next.tv_nsec);
		if (__builtin_expect((uint64_t)latency >= t->limit_ns, 0) ||
		    __builtin_expect(!ring_push(&t->ring, latency), 0)) {
			int64_t over;

			t->position = end - left;
			over = slow_path(t, latency);
			left -= over;
			next = ns_timespec(timespec_ns(&next) + over * wakeup_options.interval_ns);
			continue;
		}
		left--;
		next.tv_sec += interval_s;
		next.tv_nsec += interval_rest_ns;
		if (next.tv_nsec >= NS_PER_S) {
			next.tv_nsec -= NS_PER_S;
			next.tv_sec++;
		}
	}
	t->position = end - left;
}

static void run_phase(struct task *t, int64_t end)
{
	if (t->position >= end)
		return;
	if (wakeup_options.timer == TIMER_TIMERFD)
		measure(t, end, true);
	else
		measure(t, end, false);
}

static int prepare(struct harness_thread *thread)
{
	struct task *t = task_of(thread);

	if (wakeup_options.timer != TIMER_TIMERFD)
		return 0;
	t->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	return t->timer_fd < 0 ? errno : 0;
}

static void measure_all(struct harness_thread *thread)
{
	struct task *t = task_of(thread);

	run_phase(t, t->warm_up_count);
	usage_read(thread->schedstat, &thread->before);
	run_phase(t, t->total_count);
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = true;
	/* Activations for which a full ring had no room are reported when there is room again. */
	while (t->pending_lost && !ring_push(&t->ring, SAMPLE_LOST(t->pending_lost)))
		clock_pause_ns(ROOM_NS);
}

static int check_interval(void)
{
	struct timespec resolution;
	int64_t least;

	if (clock_getres(CLOCK_MONOTONIC, &resolution))
		return error_line(STATUS_CANNOT_MEASURE, "clock", "CLOCK_MONOTONIC cannot be read: %s",
				  strerror(errno));
	least = timespec_ns(&resolution);
	if (wakeup_options.interval_ns <= 0)
		return error_line(STATUS_USAGE, "interval",
				  "the interval must be longer than 0; give one such as 1ms or 100us");
	if (wakeup_options.interval_ns < least || wakeup_options.interval_ns < 1000)
		return error_line(STATUS_USAGE, "interval",
				  "an interval of %lld ns is shorter than %s (%lld ns); give a longer one",
				  (long long)wakeup_options.interval_ns,
				  least > 1000 ? "the clock's resolution"
					       : "the shortest time that a thread can sleep",
				  (long long)(least > 1000 ? least : INT64_C(1000)));
	return 0;
}

static int check(struct harness *h)
{
	int status = wakeup_options.space == SPACE_KERNEL ? wakeup_in_kernel(h) : check_interval();

	if (status)
		return status;
	if (harness_options.count && harness_options.count > INT64_MAX / 4 / wakeup_options.interval_ns)
		return usage_error("this many activations would take more than 70 years; give fewer");
	return 0;
}

static size_t ring_size(void)
{
	size_t size = RING_MIN;

	while (size < RING_MAX && (int64_t)size * wakeup_options.interval_ns < RING_SPAN_NS)
		size *= 2;
	return size;
}

static int64_t divide_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* Far more than an activation takes, and at most half of the CPU. */
static int64_t deadline_runtime_ns(void)
{
	return wakeup_options.interval_ns / 2 < RUNTIME_NS ? wakeup_options.interval_ns / 2 : RUNTIME_NS;
}

static struct task *make_task(unsigned int id, int cpu)
{
	struct task *t = memory_get(sizeof(*t));
	int64_t *slots = memory_get(ring_size() * sizeof(*slots));

	if (!t || !slots)
		return NULL;
	ring_init(&t->ring, slots, ring_size());
	t->timer_fd = -1;
	t->warm_up_count = divide_up(harness_options.warm_up_ns, wakeup_options.interval_ns);
	t->total_count = INT64_MAX;
	if (harness_options.count)
		t->total_count = t->warm_up_count + harness_options.count;
	else if (harness_options.duration_ns)
		t->total_count =
			t->warm_up_count + divide_up(harness_options.duration_ns, wakeup_options.interval_ns);
	t->usual_limit_ns = (uint64_t)wakeup_options.interval_ns + 1;
	if (wakeup_options.stop_at_ns && wakeup_options.stop_at_ns < wakeup_options.interval_ns)
		t->usual_limit_ns = (uint64_t)wakeup_options.stop_at_ns + 1;
	t->limit_ns = t->usual_limit_ns;
	harness_thread_on(&t->thread, cpu);
	t->thread.deadline = (struct deadline){deadline_runtime_ns(), wakeup_options.interval_ns,
					       wakeup_options.interval_ns};
	t->thread.prepare = prepare;
	t->thread.measure = measure_all;
	t->series.id = id;
	t->series.cpu = cpu;
	t->series.window_ns = wakeup_options.window_ns;
	t->series.interval_ns = wakeup_options.interval_ns;
	t->series.warm_up_count = t->warm_up_count;
	t->series.total_count = t->total_count;
	if (RUNTIME_FIRES_EARLY && !series_take_early(&t->series))
		return NULL;
	t->series.measured_ns = harness_options.duration_ns ? harness_options.duration_ns
				: harness_options.count ? harness_options.count * wakeup_options.interval_ns
							: INT64_MAX;
	return t;
}

static int prepare_probe(struct harness *h)
{
	const struct cpuset *measured = &h->cpus->measured;
	struct state *state = h->state;

	h->threads = h->measurers = state->threads;
	h->series = state->series;
	for (int cpu = cpuset_next(measured, 0); cpu >= 0;
	     cpu = cpuset_next(measured, (unsigned int)cpu + 1)) {
		struct task *t = make_task(state->task_count, cpu);

		if (!t)
			return harness_no_memory();
		state->threads[state->task_count] = &t->thread;
		state->series[state->task_count] = &t->series;
		state->tasks[state->task_count++] = t;
	}
	h->thread_count = h->series_count = state->task_count;
	return 0;
}

static int64_t random_below(int64_t bound)
{
	uint64_t value = 0;

	/* A board that has just booted may have no entropy yet. Any phase is better than waiting. */
	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t)sizeof(value))
		value = (uint64_t)clock_now_ns(CLOCK_MONOTONIC) * UINT64_C(0x9e3779b97f4a7c15);
	return (int64_t)(value % (uint64_t)bound);
}

static void set_start(const struct state *state)
{
	int64_t base_ns = clock_now_ns(CLOCK_MONOTONIC) + LEAD_NS;

	for (unsigned int i = 0; i < state->task_count; i++) {
		struct task *t = state->tasks[i];

		t->start_ns =
			base_ns +
			(wakeup_options.phase == PHASE_RANDOM ? random_below(wakeup_options.interval_ns) : 0);
		t->series.start_ns = t->start_ns;
	}
}

/* Takes everything from the rings. Returns false if every thread has ended and every ring is empty. */
static bool drain(struct harness *h, struct json *j)
{
	static int64_t values[4096];
	const struct state *state = h->state;
	bool alive = false;

	for (unsigned int i = 0; i < state->task_count; i++) {
		struct task *t = state->tasks[i];
		bool done = atomic_load(&t->thread.done);
		size_t n;

		while ((n = ring_pop(&t->ring, values, sizeof(values) / sizeof(values[0])))) {
			for (size_t v = 0; v < n; v++)
				series_feed(&t->series, values[v], j);
		}
		alive |= !done;
	}
	return alive;
}

static int64_t drain_ns(void)
{
	int64_t quarter_ns = (int64_t)ring_size() / 4 * wakeup_options.interval_ns;

	return quarter_ns < DRAIN_NS ? quarter_ns : DRAIN_NS;
}

static int run(struct harness *h)
{
	const struct state *state = h->state;

	set_start(state);
	harness_go(h);
	harness_watch(h, state->tasks[0]->total_count == INT64_MAX
				 ? INT64_MAX
				 : state->tasks[0]->total_count * wakeup_options.interval_ns);
	harness_drain(h, drain, drain_ns());
	return harness_finish(h, harness_options.count ? "count" : "duration");
}

static int verb_wakeup(int argc, char **argv)
{
	static struct harness harness = {
		.table = table,
		.state_size = sizeof(struct state),
		.check = check,
		.prepare = prepare_probe,
		.run = run,
	};

	return harness_run(&harness, argc, argv);
}

PROBE("wakeup", verb_wakeup,
      "time from when a thread should wake to its first instruction, with one thread on each CPU")
