// SPDX-License-Identifier: MIT
/*
 * preempt: a high-priority task becomes ready while a low one runs on its CPU. The probe measures the time
 * from the event to the high task's first instruction (Garre et al. 2014, sec. 3.1). The event is the time
 * for which a timer was set, or the moment just before a task on another CPU posts a semaphore.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/percent.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/usage.h"
#include "base/verbs.h"
#include "harness/burst.h"
#include "harness/cpus.h"
#include "harness/harness.h"
#include "rt/runtime.h"
#include "rt/wait.h"

#define WORK_NS (NS_PER_S / 20)
#define REST_NS (NS_PER_S / 50)
#define MIN_INTERVAL_NS 20000
#define PREEMPTED_PERCENT 90

enum event { EVENT_TIMER, EVENT_WAKE_UP };
enum role { LOW, HIGH, WAKER };

static const char *const event_names[] = {"timer", "wake-up", NULL};
static int event, placement = PLACEMENT_OTHER_CORE;
static int64_t interval_ns = 200000;

static const struct option_entry table[] = {
	{.shared = harness_option_cpu},
	{.name = "event",
	 .kind = OPTION_CHOICE,
	 .value = &event,
	 .choices = event_names,
	 .help = "what makes the high-priority task ready"},
	{.name = "placement",
	 .kind = OPTION_CHOICE,
	 .value = &placement,
	 .choices = placement_names,
	 .help = "where to run the task that wakes the high-priority task"},
	{.name = "interval-ns",
	 .kind = OPTION_INT,
	 .value = &interval_ns,
	 .min = MIN_INTERVAL_NS,
	 .max = WORK_NS / 5,
	 .help = "time between two events"},
	{.shared = harness_option_count,
	 .help = "number of events in the measured phase, instead of a duration"},
	{.shared = harness_options_measuring},
	{0},
};

struct state {
	struct burst_task *tasks[3];
	struct series *series[1];
	int64_t preempted, events; /* in all bursts */
};

static struct {
	_Alignas(CACHE_LINE) _Atomic bool over;
	size_t posts; /* set before `over` */
	_Alignas(CACHE_LINE) sem_t wake;
} burst_now;

/*
 * Used if nobody counts switches: how often a time stamp of the high task lies between two successive
 * clock readings of the low task, which was then preempted. The high task stores the time stamp on this
 * CPU.
 */
static int64_t watch_high(const struct burst *burst)
{
	const struct burst_task *high = burst->tasks[HIGH];
	const int64_t *times = high->times;
	size_t at = event == EVENT_TIMER ? 1 : 0, step = event == EVENT_TIMER ? 2 : 1;
	int64_t before_ns = clock_now_ns(CLOCK_MONOTONIC), after_ns, proven = 0;

	while (!atomic_load_explicit(&burst_now.over, memory_order_relaxed)) {
		int64_t stamp_ns;

		after_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (after_ns >= burst->limit_ns || at >= high->room)
			break;
		stamp_ns = __atomic_load_n(&times[at], __ATOMIC_RELAXED);
		if (stamp_ns && stamp_ns <= after_ns) {
			proven += before_ns <= stamp_ns;
			at += step;
		}
		before_ns = after_ns;
	}
	return proven;
}

/* The low task computes until the others have ended, but no longer than the burst. */
static void run_low(struct burst_task *t)
{
	struct usage before, after;

	burst_meet(t->burst);
	t->count = 1;
	if (!RUNTIME_COUNTS_SWITCHES) {
		t->times[0] = watch_high(t->burst);
		return;
	}
	usage_read(-1, &before);
	while (!atomic_load_explicit(&burst_now.over, memory_order_relaxed) &&
	       clock_now_ns(CLOCK_MONOTONIC) < t->burst->limit_ns)
		;
	usage_read(-1, &after);
	t->times[0] = after.involuntary_switches - before.involuntary_switches;
}

/* The measured path: waits until a time, reads the clock, stores both. */
static void run_high_by_timer(struct burst_task *t)
{
	int64_t next_ns, limit_ns = t->burst->limit_ns;
	size_t count = 0;

	burst_meet(t->burst);
	next_ns = clock_now_ns(CLOCK_MONOTONIC) + interval_ns;
	while (next_ns < limit_ns && count + 2 <= t->room) {
		struct timespec next = ns_timespec(next_ns), now;

		do {
			wait_until_monotonic(&next);
			clock_gettime(CLOCK_MONOTONIC, &now);
		} while (commands_cut_short(next_ns, timespec_ns(&now)));
		t->times[count++] = next_ns;
		t->times[count++] = timespec_ns(&now);
		next_ns = timespec_ns(&now) + interval_ns;
	}
	atomic_store(&burst_now.over, true);
	t->count = count;
}

/* The measured path: returns from wait, reads the clock, stores. */
static void run_high_by_wake_up(struct burst_task *t)
{
	struct timespec now;
	size_t count = 0;

	burst_meet(t->burst);
	for (;;) {
		while (sem_wait(&burst_now.wake))
			;
		clock_gettime(CLOCK_MONOTONIC, &now);
		/* The post that ends the burst comes after all other posts, which may still wait to be
		   seen. */
		if (atomic_load_explicit(&burst_now.over, memory_order_acquire) && count == burst_now.posts)
			break;
		t->times[count++] = timespec_ns(&now);
	}
	t->count = count;
}

static void run_waker(struct burst_task *t)
{
	int64_t next_ns, limit_ns = t->burst->limit_ns;
	size_t count = 0;

	burst_meet(t->burst);
	next_ns = clock_now_ns(CLOCK_MONOTONIC) + interval_ns;
	while (next_ns < limit_ns && count < t->room) {
		struct timespec next = ns_timespec(next_ns), now;

		wait_until_monotonic(&next);
		clock_gettime(CLOCK_MONOTONIC, &now);
		t->times[count++] = timespec_ns(&now);
		sem_post(&burst_now.wake);
		next_ns = timespec_ns(&now) + interval_ns;
	}
	clock_pause_ns(interval_ns);
	burst_now.posts = count;
	atomic_store(&burst_now.over, true);
	sem_post(&burst_now.wake);
	t->count = count;
}

static void ready(struct burst *burst)
{
	atomic_store(&burst_now.over, false);
	sem_init(&burst_now.wake, 0, 0);
	if (!RUNTIME_COUNTS_SWITCHES)
		memset(burst->tasks[HIGH]->times, 0, burst->tasks[HIGH]->room * sizeof(int64_t));
}

static bool drain(struct burst *burst, struct json *j)
{
	struct state *state = burst->harness.state;
	const struct burst_task *high = state->tasks[HIGH], *waker = state->tasks[WAKER];
	size_t count = event == EVENT_TIMER ? high->count / 2 : high->count;

	state->preempted += state->tasks[LOW]->times[0];
	state->events += (int64_t)count;
	for (size_t i = 0; i < count; i++) {
		int64_t from_ns = event == EVENT_TIMER ? high->times[2 * i] : waker->times[i];
		int64_t to_ns = event == EVENT_TIMER ? high->times[2 * i + 1] : high->times[i];

		if (!burst_feed(state->series[0], from_ns, to_ns - from_ns, j))
			return false;
	}
	return true;
}

static void conclude(struct harness *h, struct json *j)
{
	const struct state *state = h->state;
	int64_t preempted = state->preempted, events = state->events;

	stream_result(j, "preemptions");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_int(j, "events", events);
	json_int(j, "preempted", preempted);
	stream_result_end(j);
	if (percent_is_below(preempted, events, PREEMPTED_PERCENT))
		stream_mark(
			j, "not-preempted", SEVERITY_DOUBTFUL, 0,
			"the high-priority task preempted the low-priority task %lld times at %lld events; "
			"at the other events the low-priority task did not run",
			(long long)preempted, (long long)events);
}

static int check_numbers(struct harness *h)
{
	(void)h;
	if (harness_options.policy != POLICY_OTHER && harness_options.priority < 2)
		return usage_error("the low-priority task runs at one less; give --priority 2 or more");
	if (event == EVENT_WAKE_UP && placement == PLACEMENT_SAME_CPU)
		return usage_error(
			"the low-priority task never leaves its CPU, so the task that wakes the high-priority task cannot run there; give --placement other-core or same-core");
	return 0;
}

/* Without real-time priorities, the low task gets a nice value. */
static int be_nice(struct harness_thread *t)
{
	return setpriority(PRIO_PROCESS, (id_t)t->tid, 19) ? errno : 0;
}

static int prepare_probe(struct burst *burst)
{
	const size_t room = 2 * WORK_NS / MIN_INTERVAL_NS;
	struct state *state = burst->harness.state;
	struct burst_task **tasks = state->tasks;
	struct series *series = memory_get(sizeof(*series));
	int cpu, peer, status;

	status = placement_choose(burst->harness.cpus,
				  event == EVENT_TIMER ? PLACEMENT_SAME_CPU : (enum placement)placement, &cpu,
				  &peer);
	if (status)
		return status;
	tasks[LOW] = burst_task_new(cpu, room, run_low);
	tasks[HIGH] =
		burst_task_new(cpu, room, event == EVENT_TIMER ? run_high_by_timer : run_high_by_wake_up);
	tasks[WAKER] = burst_task_new(peer, room, run_waker);
	if (!tasks[LOW] || !tasks[HIGH] || !tasks[WAKER])
		return harness_no_memory();
	if (harness_options.policy == POLICY_OTHER)
		tasks[LOW]->thread.prepare = be_nice;
	else
		tasks[LOW]->thread.priority--;
	if (!series)
		return harness_no_memory();
	if (RUNTIME_FIRES_EARLY && !series_take_early(series))
		return harness_no_memory();
	series->metric = "preemption";
	series->cpu = cpu;
	series->labels[0] = (struct label){"event", event_names[event]};
	if (event == EVENT_WAKE_UP)
		series->labels[1] = (struct label){"placement", placement_names[placement]};
	state->series[0] = series;
	burst->harness.series = state->series;
	burst->harness.series_count = 1;
	burst->tasks = tasks;
	burst->task_count = event == EVENT_TIMER ? 2 : 3;
	return 0;
}

static struct burst burst = {
	.harness =
		{
			.table = table,
			.check = check_numbers,
			.state_size = sizeof(struct state),
			.conclude = conclude,
		},
	.prepare = prepare_probe,
	.work_ns = WORK_NS,
	.pause_ns = REST_NS,
	.ready = ready,
	.drain = drain,
};

static int verb_preempt(int argc, char **argv)
{
	return burst_run(&burst, argc, argv);
}

PROBE("preempt", verb_preempt,
      "time from an event to the first instruction of a high-priority task that preempts a low-priority task")
