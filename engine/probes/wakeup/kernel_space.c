// SPDX-License-Identifier: MIT
#include "probes/wakeup/kernel_space.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/commands.h"
#include "base/container_of.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/tracefs.h"
#include "probes/wakeup/activations.h"
#include "probes/wakeup/options.h"
#include "probes/wakeup/timerlat.h"

#define INTERVAL_MIN_NS INT64_C(100000) /* timerlat_min_period, timerlat_max_period of the kernel */
#define INTERVAL_MAX_NS NS_PER_S
#define LEAD_NS (NS_PER_S / 50)
#define DRAIN_NS (NS_PER_S / 10)
#define END_NS (NS_PER_S / 1000)

struct state;

/* The state of a measured CPU. */
struct task {
	const struct state *state;
	int cpu, wait_file;
	struct harness_thread thread; /* only if the engine's own threads are measured */
	struct timerlat_track track;
	int64_t last_release_ns; /* release of the last activation that was fed */
	bool any, over;		 /* whether any was fed; whether the measured phase is over */
	struct series series[TIMERLAT_CONTEXTS];
};

struct state {
	struct tracer tracer;
	struct task *tasks[PROBE_CPUS_MAX];
	struct harness_thread *threads[PROBE_CPUS_MAX];
	struct series *series[PROBE_CPUS_MAX * TIMERLAT_CONTEXTS];
	unsigned int task_count, contexts;
	int64_t start_ns, measure_ns, end_ns; /* end_ns INT64_MAX: until stopped */
	_Atomic bool ended;		      /* the threads must end although nothing has stopped them */
	bool policy_missing;
};

static struct state *to_leave; /* for leave(), which takes no argument; NULL: it has been called */

static struct task *task_of(struct harness_thread *thread)
{
	return container_of(thread, struct task, thread);
}

static int check(void)
{
	if (!wakeup_options.instance || !tracefs_is_name(wakeup_options.instance))
		return usage_error(
			"in kernel space, give --trace-instance NAME, an existing instance of tracefs (letters, digits, - and _)");
	if (wakeup_options.interval_ns < INTERVAL_MIN_NS || wakeup_options.interval_ns > INTERVAL_MAX_NS)
		return error_line(
			STATUS_USAGE, "interval",
			"the timerlat tracer accepts intervals from 100 us to 1 s, not %lld ns; give one such as 1ms",
			(long long)wakeup_options.interval_ns);
	if (wakeup_options.interval_ns % 1000)
		return error_line(STATUS_USAGE, "interval",
				  "the timerlat tracer accepts whole us, not %lld ns; give one such as 100us",
				  (long long)wakeup_options.interval_ns);
	if (harness_options.policy == POLICY_DEADLINE)
		return usage_error("in kernel space, --policy must be fifo, rr or other");
	return 0;
}

/* Runs on the thread, so that the kernel knows the thread as the measured one. */
static int prepare(struct harness_thread *thread)
{
	struct task *t = task_of(thread);

	t->wait_file = tracer_wait_file(&t->state->tracer, t->cpu);
	return t->wait_file < 0 ? errno : 0;
}

/* The measured path of an engine thread: it waits repeatedly. The kernel takes the times. */
static void wait_again(struct harness_thread *thread)
{
	struct task *t = task_of(thread);
	char nothing[8];

	while (!atomic_load_explicit(&harness_shared.stop, memory_order_relaxed) &&
	       !atomic_load_explicit(&t->state->ended, memory_order_relaxed)) {
		if (read(t->wait_file, nothing, sizeof(nothing)) < 0)
			break;
	}
	close(t->wait_file);
	t->wait_file = -1;
}

/* The kernel's threads must not continue, no matter how the process ends in order. */
static void leave(void)
{
	if (!to_leave)
		return;
	for (unsigned int i = 0; i < to_leave->task_count; i++) {
		const struct task *t = to_leave->tasks[i];

		if (t->wait_file >= 0 && !atomic_load(&t->thread.done))
			close(t->wait_file);
	}
	tracer_close(&to_leave->tracer);
	to_leave = NULL;
}

static const char *const metrics[TIMERLAT_CONTEXTS] = {
	[TIMERLAT_THREAD] = "latency",
	[TIMERLAT_IRQ] = "irq-latency",
	[TIMERLAT_USER] = "user-latency",
};

static struct task *make_task(const struct state *state, int cpu)
{
	struct task *t = memory_get(sizeof(*t));

	if (!t)
		return NULL;
	t->state = state;
	t->cpu = cpu;
	t->wait_file = -1;
	t->track.interval_ns = wakeup_options.interval_ns;
	harness_thread_on(&t->thread, cpu);
	t->thread.prepare = prepare;
	t->thread.measure = wait_again;
	return t;
}

/* The series metric by metric, for all CPUs each. */
static void number_series(struct harness *h)
{
	struct state *state = h->state;
	static const enum timerlat_context order[] = {TIMERLAT_THREAD, TIMERLAT_IRQ, TIMERLAT_USER};

	for (unsigned int c = 0; c < state->contexts; c++) {
		for (unsigned int i = 0; i < state->task_count; i++) {
			struct series *s = &state->tasks[i]->series[order[c]];

			s->id = h->series_count;
			s->cpu = state->tasks[i]->cpu;
			s->metric = metrics[order[c]];
			s->window_ns = wakeup_options.window_ns;
			h->series[h->series_count++] = s;
		}
	}
}

static int prepare_probe(struct harness *h)
{
	const struct cpuset *measured = &h->cpus->measured;
	struct state *state = h->state;
	int status =
		tracer_open(&state->tracer, wakeup_options.instance, measured, wakeup_options.interval_ns);

	if (status)
		return status;
	h->threads = state->threads;
	h->series = state->series;
	state->contexts = state->tracer.user ? TIMERLAT_CONTEXTS : TIMERLAT_CONTEXTS - 1;
	for (int cpu = cpuset_next(measured, 0); cpu >= 0;
	     cpu = cpuset_next(measured, (unsigned int)cpu + 1)) {
		struct task *t = make_task(state, cpu);

		if (!t)
			return harness_no_memory();
		state->threads[state->task_count] = &t->thread;
		state->tasks[state->task_count++] = t;
	}
	to_leave = state;
	atexit(leave);
	number_series(h);
	if (state->tracer.user)
		h->thread_count = state->task_count;
	else
		state->policy_missing = !tracer_set_policy(
			&state->tracer, (enum policy)harness_options.policy, (int)harness_options.priority);
	return 0;
}

/* Feeds the releases that were skipped before an activation. */
static void feed_missed(struct task *t, const struct timerlat_activation *a, struct json *j)
{
	const struct state *state = t->state;

	for (int64_t i = a->missed; i > 0; i--) {
		int64_t release_ns = a->release_ns - i * wakeup_options.interval_ns;
		/* The thread was back between the last skipped release and this release. */
		int64_t at_least_ns = (i - 1) * wakeup_options.interval_ns;

		if (release_ns < state->start_ns)
			continue;
		if (release_ns >= state->end_ns)
			return;
		if (a->back_ns - release_ns > at_least_ns)
			at_least_ns = a->back_ns - release_ns;
		series_miss_timed(&t->series[TIMERLAT_THREAD], release_ns, at_least_ns, j);
		if (state->contexts > TIMERLAT_USER)
			series_miss_timed(&t->series[TIMERLAT_USER], release_ns, at_least_ns, j);
	}
}

/* complete: no more of the activation's events will come, so a missing one was lost. */
static void feed(struct task *t, const struct timerlat_activation *a, bool complete, struct json *j)
{
	const struct state *state = t->state;

	if (t->over)
		return;
	feed_missed(t, a, j);
	if (a->release_ns >= state->end_ns) {
		t->over = true;
		return;
	}
	if (a->release_ns < state->start_ns)
		return;
	t->any = true;
	t->last_release_ns = a->release_ns;
	for (unsigned int c = 0; c < state->contexts; c++) {
		struct series *s = &t->series[c];
		int64_t value_ns = a->latency_ns[c];

		s->lost += a->lost + (complete && value_ns == TIMERLAT_NONE);
		if (value_ns != TIMERLAT_NONE)
			series_feed_timed(s, a->release_ns, value_ns, j);
	}
	if (wakeup_options.stop_at_ns && a->latency_ns[TIMERLAT_THREAD] > wakeup_options.stop_at_ns &&
	    a->release_ns >= state->measure_ns) {
		atomic_store(&harness_shared.over_threshold, true);
		atomic_store(&harness_shared.stop, true);
	}
}

/* Sets where events are taken, and where their values go. */
struct taking {
	struct task *task;
	struct json *json;
};

static void on_event(void *user, const struct timerlat_event *event)
{
	struct timerlat_activation over;
	const struct taking *taking = user;

	if (timerlat_track_event(&taking->task->track, event, &over))
		feed(taking->task, &over, true, taking->json);
}

/* Ends the threads first, and then the recording. Everything recorded until then can still be read. */
static void end_tracing(const struct harness *h)
{
	struct state *state = h->state;
	bool alive = true;

	atomic_store(&state->ended, true);
	while (alive) {
		alive = false;
		for (unsigned int i = 0; i < h->thread_count; i++) {
			if (!atomic_load(&h->threads[i]->done)) {
				pthread_kill(h->threads[i]->thread, SIGUSR1);
				alive = true;
			}
		}
		if (alive)
			harness_pause(END_NS);
	}
	tracer_stop(&state->tracer);
}

/* Returns false if every CPU is at its end, or if all must stop. */
static bool drain(struct harness *h, struct json *j)
{
	struct state *state = h->state;
	bool over = true;

	for (unsigned int i = 0; i < state->task_count; i++) {
		struct task *t = state->tasks[i];

		tracer_take(&state->tracer, t->cpu, on_event, &(struct taking){t, j});
		t->track.settled |= t->any && t->last_release_ns >= state->measure_ns;
		over &= t->over;
	}
	return !over && !atomic_load(&harness_shared.stop);
}

/* Releases that have no event when everything stops are missed. For the last ones, this is not known yet. */
static void feed_outstanding(struct task *t, int64_t stopped_ns, struct json *j)
{
	const struct state *state = t->state;
	int64_t release_ns = t->last_release_ns + wakeup_options.interval_ns;

	while (t->any && release_ns < state->end_ns && release_ns + wakeup_options.interval_ns < stopped_ns) {
		series_miss_timed(&t->series[TIMERLAT_THREAD], release_ns, stopped_ns - release_ns, j);
		if (state->contexts > TIMERLAT_USER)
			series_miss_timed(&t->series[TIMERLAT_USER], release_ns, stopped_ns - release_ns, j);
		release_ns += wakeup_options.interval_ns;
	}
	for (unsigned int c = 0; c < state->contexts; c++)
		t->series[c].reached_ns = release_ns;
}

static void feed_last(struct task *t, int64_t stopped_ns, struct json *j)
{
	struct timerlat_activation last;

	if (t->over)
		return;
	if (timerlat_track_end(&t->track, &last)) {
		if (last.latency_ns[TIMERLAT_THREAD] != TIMERLAT_NONE) {
			feed(t, &last, false, j);
		} else {
			feed_missed(t, &last, j);
			t->last_release_ns = last.release_ns - wakeup_options.interval_ns;
		}
	}
	feed_outstanding(t, stopped_ns, j);
}

static void set_start(struct state *state)
{
	int64_t warm_up_ns = harness_options.warm_up_ns, measured_ns = INT64_MAX;

	if (harness_options.count)
		measured_ns = harness_options.count * wakeup_options.interval_ns;
	else if (harness_options.duration_ns)
		measured_ns = harness_options.duration_ns;
	/* The first release of an engine thread is one interval after the thread began to wait. */
	state->start_ns = clock_now_ns(CLOCK_MONOTONIC) + LEAD_NS + 2 * wakeup_options.interval_ns;
	state->measure_ns = state->start_ns + warm_up_ns;
	state->end_ns = measured_ns == INT64_MAX ? INT64_MAX : state->measure_ns + measured_ns;
	for (unsigned int i = 0; i < state->task_count; i++) {
		for (unsigned int c = 0; c < state->contexts; c++)
			series_timed(&state->tasks[i]->series[c], state->start_ns, warm_up_ns, measured_ns);
	}
}

static int run(struct harness *h)
{
	struct state *state = h->state;
	int64_t stopped_ns;

	set_start(state);
	harness_go(h);
	harness_watch(h, state->end_ns == INT64_MAX ? INT64_MAX : state->end_ns - state->start_ns);
	harness_drain(h, drain, DRAIN_NS);
	stopped_ns = clock_now_ns(CLOCK_MONOTONIC);
	end_tracing(h);
	drain(h, &h->j);
	leave();
	for (unsigned int i = 0; i < state->task_count; i++)
		feed_last(state->tasks[i], stopped_ns, &h->j);
	return harness_finish(h, harness_options.count ? "count" : "duration");
}

static void conclude(struct harness *h, struct json *j)
{
	const struct state *state = h->state;
	int64_t events = state->tracer.dropped_events, drops = state->tracer.drops;

	stream_result(j, "timerlat");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_str(j, "thread", state->tracer.user ? "of the engine, by timerlat_fd" : "of the kernel");
	json_int(j, "dropped", drops);
	json_int(j, "dropped_events", events);
	stream_result_end(j);
	if (drops)
		stream_mark(
			j, "trace-dropped", SEVERITY_NOTE, -1,
			"the kernel dropped trace events %lld time(s), at least %lld events, because the thread that "
			"reads them was too late",
			(long long)drops, (long long)events);
	if (state->policy_missing)
		stream_mark(j, "policy-not-set", SEVERITY_DOUBTFUL, -1,
			    "rtgauge did not find all timerlat threads of the kernel; the others keep the "
			    "priority that the kernel gave them, FIFO 95");
}

int wakeup_in_kernel(struct harness *h)
{
	h->state = memory_get(sizeof(struct state));
	if (!h->state)
		return harness_no_memory();
	h->prepare = prepare_probe;
	h->run = run;
	h->conclude = conclude;
	return check();
}
