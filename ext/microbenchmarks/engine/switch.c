// SPDX-License-Identifier: MIT
/*
 * switch: tasks of equal priority on one CPU yield to each other with sched_yield. The probe measures the
 * cost of one switch (Garre et al. 2014, sec. 3.1). Each task stores the time before each of its yields.
 * Between one task's time and the next time of any task are a yield, a clock reading and, if the next time
 * is another task's, a switch.
 */
#include <sched.h>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/verbs.h"
#include "harness/burst.h"
#include "harness/cpus.h"
#include "harness/harness.h"

#define TASKS_MAX 64
#define WORK_NS (NS_PER_S / 50)
#define REST_NS (NS_PER_S / 50)
#define ROOM 32768

static int64_t task_count = 2;

static const struct option_entry table[] = {
	{.shared = harness_option_cpu},
	{.name = "tasks",
	 .kind = OPTION_INT,
	 .value = &task_count,
	 .min = 2,
	 .max = TASKS_MAX,
	 .help = "number of tasks that take turns"},
	{.shared = harness_option_count,
	 .help = "number of switches in the measured phase, instead of a duration"},
	{.shared = harness_options_measuring},
	{0},
};

struct state {
	struct burst_task *tasks[TASKS_MAX];
	struct series *series[1];
	int64_t kept_the_cpu; /* yields after which the same task continued */
};

static struct {
	_Alignas(CACHE_LINE) _Atomic bool over;
} burst_now;

/* The measured path: reads the clock, stores, yields. */
static void work(struct burst_task *t)
{
	struct timespec now;
	int64_t limit_ns = t->burst->limit_ns;
	size_t count = 0;

	burst_meet(t->burst);
	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		/* A task that has ended gave up the CPU by sleeping, so that was not a yield. */
		if (atomic_load_explicit(&burst_now.over, memory_order_relaxed))
			break;
		t->times[count++] = timespec_ns(&now);
		if (count == t->room || t->times[count - 1] >= limit_ns)
			break;
		sched_yield();
	}
	atomic_store(&burst_now.over, true);
	t->count = count;
}

static void ready(struct burst *burst)
{
	(void)burst;
	atomic_store(&burst_now.over, false);
}

/* Returns the task whose next time is the earliest; -1: there is none. */
static int earliest(struct burst_task *const *tasks, const size_t *at)
{
	int first = -1;

	for (int i = 0; i < task_count; i++) {
		if (at[i] < tasks[i]->count &&
		    (first < 0 || tasks[i]->times[at[i]] < tasks[first]->times[at[first]]))
			first = i;
	}
	return first;
}

static bool drain(struct burst *burst, struct json *j)
{
	struct state *state = burst->harness.state;
	struct series *series = state->series[0];
	size_t at[TASKS_MAX] = {0};
	int64_t before_ns = 0;
	int last = -1, next;

	while ((next = earliest(state->tasks, at)) >= 0) {
		int64_t time_ns = state->tasks[next]->times[at[next]++];

		if (last == next && series->measuring)
			state->kept_the_cpu++;
		else if (last >= 0 && last != next && !burst_feed(series, before_ns, time_ns - before_ns, j))
			return false;
		last = next;
		before_ns = time_ns;
	}
	return true;
}

static void conclude(struct harness *h, struct json *j)
{
	const struct state *state = h->state;
	const struct series *series = state->series[0];
	int64_t kept_the_cpu = state->kept_the_cpu;

	stream_result(j, "yields");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_int(j, "switched", series->total.count);
	json_int(j, "kept_the_cpu", kept_the_cpu);
	stream_result_end(j);
	if (kept_the_cpu > series->total.count)
		stream_mark(
			j, "few-switches", SEVERITY_NOTE, 0,
			"after %lld of %lld yields, the same task continued, because this policy does not "
			"hand over the CPU at each yield",
			(long long)kept_the_cpu, (long long)kept_the_cpu + series->total.count);
}

static int prepare_probe(struct burst *burst)
{
	struct state *state = burst->harness.state;
	struct series *series = memory_get(sizeof(*series));
	int cpu, status = placement_choose(burst->harness.cpus, PLACEMENT_SAME_CPU, &cpu, &cpu);

	if (status)
		return status;
	if (!series)
		return harness_no_memory();
	series->metric = "switch";
	series->cpu = cpu;
	for (unsigned int i = 0; i < task_count; i++) {
		state->tasks[i] = burst_task_new(cpu, ROOM, work);
		if (!state->tasks[i])
			return harness_no_memory();
	}
	state->series[0] = series;
	burst->harness.series = state->series;
	burst->harness.series_count = 1;
	burst->tasks = state->tasks;
	burst->task_count = (unsigned int)task_count;
	return 0;
}

static struct burst burst = {
	.harness =
		{
			.table = table,
			.state_size = sizeof(struct state),
			.conclude = conclude,
		},
	.prepare = prepare_probe,
	.work_ns = WORK_NS,
	.pause_ns = REST_NS,
	.ready = ready,
	.drain = drain,
};

static int verb_switch(int argc, char **argv)
{
	return burst_run(&burst, argc, argv);
}

PROBE("switch", verb_switch, "time that a task switch takes when tasks of equal priority yield to each other")
