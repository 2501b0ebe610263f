/* SPDX-License-Identifier: MIT */
/* Counts of signed values in ticks: exact up to 511 either way, then 256 bins an octave (0.4 %), up to 2^32.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BINS 6400u /* of each sign: 512, and 23 octaves of 256 */
#define OUTLIER_COUNT 32u

struct outlier {
	int64_t value;
	uint64_t time;
	uint64_t index; /* its index among all values, from 0 */
};

/* What every value changes comes first: the core reaches it without loading an address. */
struct histogram {
	uint64_t count;
	int64_t min, max, sum;
	uint64_t squares_low, squares_high; /* sum of the squares, 128 bits */
	uint64_t least_magnitude;	    /* of the smallest outlier */
	uint32_t least_place;
	uint32_t outlier_count;
	struct outlier outliers[OUTLIER_COUNT];
	uint64_t bins[2][HISTOGRAM_BINS]; /* [0] values from 0 on, [1] below 0 by their magnitude */
};

void histogram_clear(struct histogram *histogram);
void histogram_add(struct histogram *histogram, int64_t value, uint64_t time);

#endif
