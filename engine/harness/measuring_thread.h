/* SPDX-License-Identifier: MIT */
/* A thread that measures: it prepares, waits at the gate, measures and reports that it is done. */
#ifndef RTGAUGE_MEASURING_THREAD_H
#define RTGAUGE_MEASURING_THREAD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/cache_line.h"
#include "base/usage.h"
#include "rt/deadline.h"
#include "rt/policy.h"

/* A measuring thread; a probe has it in its own struct. */
struct harness_thread {
	/* the probe's, set before harness_start */
	int (*prepare)(struct harness_thread *t); /* runs on the thread before it is ready; returns 0 or an
						     errno; may be NULL */
	void (*measure)(
		struct harness_thread *t); /* from the gate to the end; not called if it is stopped before */
	int cpu, priority;
	enum policy policy;
	struct deadline deadline; /* for POLICY_DEADLINE */
	bool free;		  /* not pinned to its CPU */

	/* the harness's; `measure` may use them */
	int schedstat, error;
	struct usage before, after; /* the counts between the two are reported if usage_known */
	bool usage_known, moved, policy_refused;
	pthread_t thread;
	pid_t tid;
	clockid_t cpu_clock;
	_Atomic bool ready, done;
	_Atomic int64_t
		given_up_ns; /* when the watchdog moved it from a CPU that another thread held; 0: never */
};

/* What all threads share. */
struct harness_shared {
	_Alignas(CACHE_LINE) _Atomic bool stop; /* in its own cache line, because every measuring thread reads
						   it each time */
	_Alignas(CACHE_LINE) _Atomic bool over_threshold;
	sem_t gate; /* one post lets one thread go */
};

extern struct harness_shared harness_shared;

/* Starts the thread and waits until it is ready. Returns 0, or the exit status after an `error` line. */
int harness_thread_start(struct harness_thread *t);

/* Stops every thread and wakes the sleeping ones, repeatedly: a signal just before a thread sleeps does not
 * wake it. */
void harness_threads_stop(struct harness_thread *const *threads, unsigned int count);

#endif
