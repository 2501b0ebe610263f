/* SPDX-License-Identifier: MIT */
/* Finds the period on which the expiries of a thread's timers lie. */
#ifndef RTGAUGE_WATCH_GRID_H
#define RTGAUGE_WATCH_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The points origin + k * period. */
struct grid {
	int64_t origin_ns;
	double period_ns;
	double spread_ns; /* median deviation of the step from one expiry to the next */
};

/* Returns how far (ns) an expiry may lie from its point: 50 us or 1 % of the period, but at most a fifth of
 * a short period. */
int64_t grid_tolerance_ns(double period_ns);

/*
 * Finds the grid with at least 99 % of these times, which are in ascending order; the origin is near the
 * last one. Returns false if there is none, or if there are fewer than four times.
 */
bool grid_fit(const int64_t *times_ns, size_t count, struct grid *grid);

/* The same for a grid that begins anew at a later time now and then: three of four times follow the one
 * before by one period, and 99 % by no less. */
bool grid_fit_steps(const int64_t *times_ns, size_t count, struct grid *grid);

/* Returns the median of values, whose order changes; 0 if there are none. */
double median_ns(double *values, size_t count);

#endif
