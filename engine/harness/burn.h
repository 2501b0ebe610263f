/* SPDX-License-Identifier: MIT */
/* A busy loop that burns a given time of the CPU, and notes when its thread did not run meanwhile. */
#ifndef RTGAUGE_BURN_H
#define RTGAUGE_BURN_H

#include <stdbool.h>
#include <stdint.h>

/* A longer gap between two readings of the clock is time in which the thread did not run. */
#define BURN_GAP_NS 10000

/*
 * BURN_WALL, as Delgado & Choi 2020, algorithm 2: loops of 1 ms by the clock, so that a loop also ends by
 * time in which the thread did not run. BURN_CPU: by the thread's own CPU time.
 */
enum burn_by { BURN_WALL, BURN_CPU };

/* A stretch without a gap. */
struct burn_segment {
	int64_t activation, start_ns, end_ns;
};

/* Where segments are noted; the thread's own until it is done. */
struct burn_trace {
	struct burn_segment *segments;
	unsigned int size, count, dropped;
};

/* What the loop costs on this CPU. */
struct burn_cost {
	int64_t pass_ns;	 /* one pass of the loop */
	int64_t thread_clock_ns; /* one reading of the thread's CPU time */
};

/* Measures the cost on the calling thread's CPU; takes some ms. */
void burn_calibrate(struct burn_cost *cost);

/*
 * Burns time_ns from start_ns, a reading of CLOCK_MONOTONIC just before. Ends early at limit_ns (a time) and
 * at the stop flag: then -1; else the time at its end. trace: NULL, or where the segments of this activation
 * go.
 */
int64_t burn(enum burn_by by, int64_t time_ns, int64_t start_ns, int64_t limit_ns,
	     const struct burn_cost *cost, struct burn_trace *trace, int64_t activation);

#endif
