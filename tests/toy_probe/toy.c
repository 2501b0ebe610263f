// SPDX-License-Identifier: MIT
/* toy: the time between two readings of the clock, one after the other. For tests/e2e/test_new_probe.py. */
#include "base/error.h"
#include "base/series.h"
#include "base/stream.h"
#include "harness/burst.h"
#include "harness/cpus.h"
#include "harness/harness.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/verbs.h"

#define ROOM 1000

static const struct option_entry table[] = {
	{.shared = harness_option_cpu},
	{.shared = harness_option_count, .help = "readings in the measured phase, instead of a duration"},
	{.shared = harness_options_measuring},
	{0},
};

static struct burst_task *task;
static struct series *series;

static void work(struct burst_task *t)
{
	struct timespec now;

	burst_meet();
	for (t->count = 0; t->count < t->room; t->count++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		t->times[t->count] = timespec_ns(&now);
	}
}

static bool drain(struct json *j)
{
	for (size_t i = 1; i < task->count; i++) {
		if (!burst_feed(series, task->times[i - 1], task->times[i] - task->times[i - 1], j))
			return false;
	}
	return true;
}

static int prepare_probe(struct burst *burst)
{
	int cpu, status = placement_choose(burst->harness.cpus, PLACEMENT_SAME_CPU, &cpu, &cpu);

	if (status)
		return status;
	series = memory_get(sizeof(*series));
	if (!series)
		return harness_no_memory();
	series->metric = "reading";
	series->cpu = cpu;
	task = burst_task_new(cpu, ROOM, work);
	if (!task)
		return harness_no_memory();
	burst->task_count = 1;
	return 0;
}

static struct burst burst = {
	.harness =
		{
			.table = table,
			.series = &series,
			.series_count = 1,
		},
	.prepare = prepare_probe,
	.tasks = &task,
	.work_ns = NS_PER_S / 50,
	.pause_ns = NS_PER_S / 50,
	.drain = drain,
};

static int verb_toy(int argc, char **argv)
{
	return burst_run(&burst, argc, argv);
}

PROBE("toy", verb_toy, "time between two readings of the clock")
