/* SPDX-License-Identifier: MIT */
/* A busy loop that burns a given time of the CPU, and notes when its thread did not run. */
#ifndef RTGAUGE_BUSY_LOOP_H
#define RTGAUGE_BUSY_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* A longer gap between two readings of the clock is time in which the thread did not run. */
#define BUSY_LOOP_GAP_NS 10000

/*
 * BUSY_LOOP_WALL, as Delgado & Choi 2020, algorithm 2: loops of 1 ms by the clock, so that time in which
 * the thread did not run also ends a loop. BUSY_LOOP_CPU: by the thread's own CPU time.
 */
enum busy_loop_by { BUSY_LOOP_WALL, BUSY_LOOP_CPU };

/* A stretch without a gap. */
struct busy_loop_segment {
	int64_t activation, start_ns, end_ns;
};

/* Where to note segments; the thread's own until it has ended. */
struct busy_loop_trace {
	struct busy_loop_segment *segments;
	unsigned int size, count, dropped;
};

/* The cost of the loop on this CPU. */
struct busy_loop_cost {
	int64_t pass_ns;	 /* one pass of the loop */
	int64_t thread_clock_ns; /* one reading of the thread's CPU time */
};

/* Measures the cost on the calling thread's CPU; takes some ms. */
void busy_loop_calibrate(struct busy_loop_cost *cost);

/*
 * Burns time_ns from start_ns, a reading of CLOCK_MONOTONIC just before. Returns the time at its end, or -1
 * if it ended early at limit_ns (a time) or the stop flag. trace: where to note this activation's segments,
 * or NULL. ran_ns: if the runtime has no CPU time by thread (RUNTIME_COUNTS_SWITCHES 0), set to the loop's
 * time without its gaps, which BUSY_LOOP_CPU then burns.
 */
int64_t busy_loop(enum busy_loop_by by, int64_t time_ns, int64_t start_ns, int64_t limit_ns,
		  const struct busy_loop_cost *cost, struct busy_loop_trace *trace, int64_t activation,
		  int64_t *ran_ns);

#endif
