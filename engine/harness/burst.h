/* SPDX-License-Identifier: MIT */
/*
 * Measures in bursts. A probe's tasks work together for a bounded time, and store into their own arrays.
 * Then they wait at their gates while the first thread reads the arrays. Each burst has a time limit, and
 * a pause follows, so that a real-time probe on every CPU leaves the machine usable.
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
	/* the probe's own, set before its first burst */
	void (*work)(struct burst_task *t); /* measures one burst, until the burst's limit_ns */
	struct harness_thread thread;
	int64_t *times; /* what the burst measured */
	size_t room, count;

	/* of the bursts */
	struct burst *burst;
	sem_t gate;
	unsigned int number;
};

struct burst {
	/* of the probe */
	struct harness harness;		     /* without `prepare` and `run` */
	int (*prepare)(struct burst *burst); /* makes tasks and series; returns 0, or the exit status after an
					 `error` line */
	struct burst_task **tasks;
	unsigned int task_count;
	int64_t work_ns, pause_ns;
	void (*ready)(struct burst *burst); /* called before each burst, while all tasks wait; may be NULL */
	/* Takes the samples of the burst. Returns false if they are enough. */
	bool (*drain)(struct burst *burst, struct json *j);

	/* of the bursts */
	int64_t limit_ns; /* latest end of the burst; constant during the burst */
	_Atomic bool measuring, finished;
	_Atomic unsigned int arrived_count;
	sem_t all_arrived, over;
};

/* Every task of the burst waits here, before it measures, until all have arrived. */
void burst_meet(struct burst *burst);

/* Allocates a task with an array of `room` times; returns NULL if there is no memory. */
struct burst_task *burst_task_new(int cpu, size_t room, void (*work)(struct burst_task *t));

/* Runs the whole life of a probe, like harness_run, with bursts until the time or the count is over.
 * Returns the exit status. */
int burst_run(struct burst *burst, int argc, char **argv);

/* Feeds one sample, and counts it if it is in the measured phase. Returns false when enough are counted. */
bool burst_feed(struct series *s, int64_t time_ns, int64_t value_ns, struct json *j);

#endif
