/* SPDX-License-Identifier: MIT */
/*
 * Measuring in rounds: the tasks of a probe work for a bounded time at once, into arrays of their own, and
 * rest at their gates while the first thread takes what is in the arrays. No round is longer than its limit
 * and none follows without a rest, so that a real-time probe on every CPU leaves the machine usable.
 */
#ifndef RTGAUGE_HARNESS_ROUNDS_H
#define RTGAUGE_HARNESS_ROUNDS_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/harness.h"

struct rounds_task {
	/* the probe's, set before its first round */
	void (*work)(struct rounds_task *t); /* one round, until rounds_limit_ns */
	struct harness_thread thread;
	int64_t *times; /* what the round measured */
	size_t room, count;

	/* the rounds' */
	sem_t gate;
	unsigned int number;
};

struct rounds {
	/* the probe's */
	struct harness harness;	       /* without `make` and `run` */
	int (*make)(struct rounds *r); /* tasks and series: 0, or the exit status after an `error` line */
	struct rounds_task **tasks;
	unsigned int task_count;
	int64_t work_ns, rest_ns;
	void (*ready)(void); /* before each round, while all tasks rest; or NULL */
	/* What the round left; false: it is enough. */
	bool (*take)(struct json *j);
};

/* When the round ends at the latest; constant while it goes on. */
extern int64_t rounds_limit_ns;

/* Every task of the round comes here before it measures; the last one does not wait. */
void rounds_meet(void);

/* Memory for a task with an array of `room` times; NULL: there is none. */
struct rounds_task *rounds_task_new(int cpu, size_t room, void (*work)(struct rounds_task *t));

/* The whole life of a probe, as harness_run: with rounds until the time or the count is over. Gives the exit
 * status. */
int rounds_run(struct rounds *r, int argc, char **argv);

/* Feeds one sample and counts it where it was of the measured phase; false: as many as wanted are counted. */
bool rounds_feed(struct series *s, int64_t time_ns, int64_t value_ns, struct json *j);

#endif
