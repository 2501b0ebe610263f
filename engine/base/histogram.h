/* SPDX-License-Identifier: MIT */
/* The histogram of docs/formats/histogram.md: exact 1 us bins up to 10 ms, 1 % or better from 10 ns to 10 s.
 */
#ifndef RTGAUGE_HISTOGRAM_H
#define RTGAUGE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BINS 12101 /* the last one counts what is 10 s or more */

struct histogram {
	uint32_t count[HISTOGRAM_BINS];
	uint32_t low, high; /* bins outside of low..high are empty; low > high: all are */
};

/* The bin of a value >= 0 (ns). */
uint32_t histogram_bin(int64_t value_ns);

/* The largest value that a bin holds (ns); INT64_MAX for the last one. */
int64_t histogram_upper(uint32_t bin);

/* A histogram must be cleared before its first use, with low = 0 and high = the last bin, or all zero. */
void histogram_clear(struct histogram *h);
void histogram_add(struct histogram *h, int64_t value_ns);

#endif
