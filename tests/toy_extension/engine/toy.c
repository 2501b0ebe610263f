// SPDX-License-Identifier: MIT
/* toy: the time between two readings of the clock, one after the other. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/verbs.h"
#include "harness/burst.h"
#include "harness/cpus.h"
#include "harness/harness.h"

#define ROOM 1000

static const struct option_entry table[] = {
	{.shared = harness_option_cpu},
	{.shared = harness_option_count, .help = "readings in the measured phase, instead of a duration"},
	{.shared = harness_options_measuring},
	{0},
};

struct state {
	struct burst_task *tasks[1];
	struct series *series[1];
};

static void work(struct burst_task *t)
{
	struct timespec now;

	burst_meet(t->burst);
	for (t->count = 0; t->count < t->room; t->count++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		t->times[t->count] = timespec_ns(&now);
	}
}

static bool drain(struct burst *burst, struct json *j)
{
	const struct state *state = burst->harness.state;
	const struct burst_task *task = state->tasks[0];

	for (size_t i = 1; i < task->count; i++) {
		if (!burst_feed(state->series[0], task->times[i - 1], task->times[i] - task->times[i - 1], j))
			return false;
	}
	return true;
}

static int prepare_probe(struct burst *burst)
{
	struct state *state = burst->harness.state;
	struct series *series = memory_get(sizeof(*series));
	int cpu, status = placement_choose(burst->harness.cpus, PLACEMENT_SAME_CPU, &cpu, &cpu);

	if (status)
		return status;
	state->tasks[0] = burst_task_new(cpu, ROOM, work);
	state->series[0] = series;
	if (!series || !state->tasks[0])
		return harness_no_memory();
	series->metric = "reading";
	series->cpu = cpu;
	burst->tasks = state->tasks;
	burst->task_count = 1;
	burst->harness.series = state->series;
	burst->harness.series_count = 1;
	return 0;
}

static struct burst burst = {
	.harness = {.table = table, .state_size = sizeof(struct state)},
	.prepare = prepare_probe,
	.work_ns = NS_PER_S / 50,
	.pause_ns = NS_PER_S / 50,
	.drain = drain,
};

static int verb_toy(int argc, char **argv)
{
	return burst_run(&burst, argc, argv);
}

PROBE("toy", verb_toy, "time between two readings of the clock")
