/* SPDX-License-Identifier: MIT */
/* The cost of reading a clock: differences of successive readings (Garre et al. 2014, sec. 3.4). */
#ifndef RTGAUGE_CLOCK_COST_H
#define RTGAUGE_CLOCK_COST_H

#include <stdint.h>
#include <time.h>

#include "base/histogram.h"
#include "base/json.h"

struct clock_cost {
	int64_t resolution_ns; /* as the kernel states it */
	int64_t count, min_ns, max_ns, sum_ns;
	int64_t smallest_step_ns; /* the smallest difference that is not 0; 0: the clock did not move */
	int64_t backwards;	  /* readings before the previous one */
	uint32_t bins[HISTOGRAM_BINS];
};

/* Reads the clock count times, but at most for limit_ns. Returns 0 or an errno: no such clock. */
int clock_cost_measure(clockid_t clock, int64_t count, int64_t limit_ns, struct clock_cost *cost);

/* Returns the nearest rank from the bins: its bin's largest value, at most max_ns. count must not be 0. */
int64_t clock_cost_quantile(const struct clock_cost *cost, double share);

/* Measures CLOCK_MONOTONIC briefly, and writes `clock` of the hello. */
void clock_cost_json(struct json *j);

#endif
