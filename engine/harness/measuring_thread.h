/* SPDX-License-Identifier: MIT */
/* A thread that measures. It prepares, waits at the gate, measures, and reports that it is done. */
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

/* A measuring thread. A probe has it inside a struct of its own. */
struct harness_thread {
	/* the probe's own, set before harness_start */
	int (*prepare)(struct harness_thread *t);  /* runs on the thread before it is ready; returns 0 or an
						      errno; may be NULL */
	void (*measure)(struct harness_thread *t); /* runs from the gate to the end; not called if the thread
						      is stopped first */
	int cpu, priority;
	enum policy policy;
	struct deadline deadline; /* for POLICY_DEADLINE */
	bool free;		  /* not pinned to its CPU */

	/* the harness's own; `measure` may use them */
	int schedstat, error;
	struct usage before, after; /* the counts between these two are reported if usage_known */
	bool usage_known, moved, policy_refused;
	int series; /* the first series that it measures, set at the end; -1: none */
	pthread_t thread;
	pid_t tid;
	clockid_t cpu_clock;
	_Atomic bool ready, done;
	_Atomic int64_t
		given_up_ns; /* when the watchdog moved it off a CPU that another thread held; 0: never */
};

/* The state that all threads share. */
struct harness_shared {
	_Alignas(CACHE_LINE) _Atomic bool stop; /* in its own cache line, because every measuring thread reads
					    it in each activation */
	_Alignas(CACHE_LINE) _Atomic bool over_threshold;
	sem_t gate; /* one post lets one thread go */
};

extern struct harness_shared harness_shared;

/* Gives the thread its CPU, and the policy and priority of the options. */
void harness_thread_on(struct harness_thread *t, int cpu);

/* Starts the thread and waits until it is ready. Returns 0, or the exit status after an `error` line. */
int harness_thread_start(struct harness_thread *t);

/* Stops every thread and wakes the sleeping ones. This is repeated, because a signal that comes just
 * before a thread sleeps does not wake it. */
void harness_threads_stop(struct harness_thread *const *threads, unsigned int count);

#endif
