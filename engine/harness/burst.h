/* SPDX-License-Identifier: MIT */
/*
 * Measuring in bursts: the tasks of a probe work for a bounded time at once, into arrays of their own, and
 * wait at their gates while the first thread takes what is in the arrays. No burst is longer than its limit
 * and none follows without a pause, so that a real-time probe on every CPU leaves the machine usable.
 */
#ifndef RTGAUGE_HARNESS_BURST_H
#define RTGAUGE_HARNESS_BURST_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/harness.h"

struct burst;

struct burst_task {
	/* the probe's, set before its first burst */
	void (*work)(struct burst_task *t); /* one burst, until the burst's limit_ns */
	struct harness_thread thread;
	int64_t *times; /* what the burst measured */
	size_t room, count;

	/* the bursts' */
	struct burst *burst;
	sem_t gate;
	unsigned int number;
};

struct burst {
	/* the probe's */
	struct harness harness; /* without `prepare` and `run` */
	int (*prepare)(
		struct burst *burst); /* tasks and series: 0, or the exit status after an `error` line */
	struct burst_task **tasks;
	unsigned int task_count;
	int64_t work_ns, pause_ns;
	void (*ready)(struct burst *burst); /* before each burst, while all tasks wait; or NULL */
	/* What the burst left; false: it is enough. */
	bool (*drain)(struct burst *burst, struct json *j);

	/* the bursts' */
	int64_t limit_ns; /* when the burst ends at the latest; constant while it goes on */
	_Atomic bool measuring, finished;
	_Atomic unsigned int arrived_count;
	sem_t all_arrived, over;
};

/* Every task of the burst comes here before it measures; the last one does not wait. */
void burst_meet(struct burst *burst);

/* Memory for a task with an array of `room` times; NULL: there is none. */
struct burst_task *burst_task_new(int cpu, size_t room, void (*work)(struct burst_task *t));

/* The whole life of a probe, as harness_run: with bursts until the time or the count is over. Gives the exit
 * status. */
int burst_run(struct burst *burst, int argc, char **argv);

/* Feeds one sample and counts it where it was of the measured phase; false: as many as wanted are counted. */
bool burst_feed(struct series *s, int64_t time_ns, int64_t value_ns, struct json *j);

#endif
