/* SPDX-License-Identifier: MIT */
/*
 * The threads of the tire compute steps as fast as possible, or one each period. All meet after each step
 * (after several, if the solver runs freely or alone). The last thread to arrive does the bookkeeping for
 * all: it reads the clock, stores, and decides how to continue.
 */
#ifndef RTGAUGE_TIRE_RUN_H
#define RTGAUGE_TIRE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ext/tire/engine/solver.h"
#include "harness/harness.h"

struct tire_sample {
	int64_t time_ns; /* release of the step; real-fast: its beginning */
	int64_t step_ns; /* from the first thread's beginning to the end; real-fast: of one step of a block */
	int64_t latency_ns,
		response_ns; /* real-time: from the release until every CPU has begun; until the end */
	int64_t missed;	     /* activations of this phase that were released before the end */
};

/* Of the measured phase. */
struct tire_books {
	int64_t steps, wall_ns, rest_ns, shortest_ns, longest_ns, lost;
	int64_t activations, late, missed;
	int64_t end_ns; /* real-fast: of the last step */
	bool overload;	/* ended because the threads left no time to the machine */
};

struct tire_plan {
	const struct tire_solver *solver;
	const struct tire_model *model;
	void *tire; /* of the solver; tire_run_make sets it */
	unsigned int threads, cpus;
	bool free_running;
	bool rests;	     /* leave the machine some time, and end if none is left */
	int64_t period_ns;   /* 0: real-fast */
	int64_t steps;	     /* of the measured phase; in real-time, activations; INT64_MAX: until stopped */
	int64_t block;	     /* real-fast: steps in a sample */
	int64_t warm_up_ns;  /* in real-time, whole periods */
	int64_t measured_ns; /* real-fast; INT64_MAX: until the steps are done */
};

/* Allocates the threads, their samples and the tire. Returns 0, or the exit status after an `error` line. */
int tire_run_make(struct tire_plan *plan);

/* Returns the nth thread, with `measure` set. */
struct harness_thread *tire_run_thread(unsigned int n);

/* Call when the threads are ready, before they start. Sets when the first phase begins. Returns the
 * earliest beginning of the measured phase. */
int64_t tire_run_begin(int64_t start_ns);

/* Another thread, always the same one, calls this. Takes the next sample; returns false if there is none
   yet. */
bool tire_run_next(struct tire_sample *sample);

/* Called after the threads have ended. */
const struct tire_books *tire_run_books(void);

/* Returns the mean time that the first thread spends in a step's barrier; < 0: there is no such barrier. */
double tire_run_barrier_ns(void);

/* Returns the memory of the samples. */
size_t tire_run_bytes(void);

#endif
