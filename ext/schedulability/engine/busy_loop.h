/* SPDX-License-Identifier: MIT */
/* A busy loop that burns a given amount of CPU time, and notes when its thread did not run. */
#ifndef RTGAUGE_BUSY_LOOP_H
#define RTGAUGE_BUSY_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* If two clock readings are farther apart than this, the thread did not run in between. */
#define BUSY_LOOP_GAP_NS 10000

/*
 * BUSY_LOOP_WALL burns wall time, as Delgado & Choi 2020, algorithm 2: loops of 1 ms by the clock, so that
 * time in which the thread did not run also ends a loop. BUSY_LOOP_CPU burns the thread's own CPU time.
 */
enum busy_loop_by { BUSY_LOOP_WALL, BUSY_LOOP_CPU };

/* A stretch without a gap, in which the thread ran. */
struct busy_loop_segment {
	int64_t activation, start_ns, end_ns;
};

/* Where segments are noted; it belongs to the thread until the thread has ended. */
struct busy_loop_trace {
	struct busy_loop_segment *segments;
	unsigned int size, count, dropped;
};

/* The cost of the loop on this CPU. */
struct busy_loop_cost {
	int64_t pass_ns;	 /* one pass of the loop */
	int64_t thread_clock_ns; /* one reading of the thread's CPU time */
};

/* Measures the cost on the calling thread's CPU, which takes some ms. */
void busy_loop_calibrate(struct busy_loop_cost *cost);

/*
 * Burns time_ns from start_ns, a clock reading (CLOCK_MONOTONIC) just before. Returns the time at its end,
 * or -1 if it ended early at limit_ns (a time) or at the stop flag. trace: where to note this activation's
 * segments, or NULL. ran_ns: if the runtime has no CPU time for each thread (RUNTIME_COUNTS_SWITCHES 0),
 * set to the loop's time without its gaps, which BUSY_LOOP_CPU then burns.
 */
int64_t busy_loop(enum busy_loop_by by, int64_t time_ns, int64_t start_ns, int64_t limit_ns,
		  const struct busy_loop_cost *cost, struct busy_loop_trace *trace, int64_t activation,
		  int64_t *ran_ns);

#endif
