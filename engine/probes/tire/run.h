/* SPDX-License-Identifier: MIT */
/*
 * The threads of the tire: steps as fast as possible, or one a period. All meet after each step (a solver
 * that runs freely or alone: after several), and the last one to arrive keeps the books for all: it reads the
 * clock, stores, and says how to go on.
 */
#ifndef RTGAUGE_TIRE_RUN_H
#define RTGAUGE_TIRE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/harness.h"
#include "probes/tire/solver.h"

struct tire_sample {
	int64_t time_ns; /* when the step was released; real-fast: when it began */
	int64_t step_ns; /* from the first thread's beginning to the end; real-fast: of one step of a block */
	int64_t latency_ns,
		response_ns; /* real-time: from the release until every CPU has begun; to the end */
	int64_t missed;	     /* activations of this phase that were released before the end */
};

/* Of the measured phase. */
struct tire_books {
	int64_t steps, wall_ns, rest_ns, shortest_ns, longest_ns, lost;
	int64_t activations, late, missed;
	int64_t end_ns; /* real-fast: of the last step */
	bool overload;	/* ended: the threads left nothing to the machine */
};

struct tire_plan {
	const struct tire_solver *solver;
	const struct tire_model *model;
	unsigned int threads, cpus;
	bool free_running;
	bool rests;	     /* leave the machine some time, and end where there is none left */
	int64_t period_ns;   /* 0: real-fast */
	int64_t steps;	     /* of the measured phase, activations in real-time; INT64_MAX: until told */
	int64_t block;	     /* steps a sample, real-fast */
	int64_t warm_up_ns;  /* whole periods in real-time */
	int64_t measured_ns; /* real-fast; INT64_MAX: until the steps are done */
};

/* Memory for the threads and their samples. 0, or the exit status after an `error` line. */
int tire_run_make(const struct tire_plan *plan);

/* The nth thread; `measure` is set. */
struct harness_thread *tire_run_thread(unsigned int n);

/* After the threads are ready and before they go: when the first phase begins. Gives when the measured one
 * does at the earliest. */
int64_t tire_run_begin(int64_t start_ns);

/* By one thread that is none of these: the next sample; false: there is none now. */
bool tire_run_next(struct tire_sample *sample);

/* After the threads have ended. */
const struct tire_books *tire_run_books(void);

/* Mean that the first thread spends in the barrier of a step; < 0: there is no such barrier. */
double tire_run_barrier_ns(void);

/* Memory that the samples take. */
size_t tire_run_bytes(void);

#endif
