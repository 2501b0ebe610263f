/* SPDX-License-Identifier: MIT */
#include "histogram.h"

static unsigned bin(uint32_t magnitude)
{
	unsigned octave = 0;

	for (uint32_t rest = magnitude; rest >= 512u; rest >>= 1)
		octave++;
	return octave * 256u + (magnitude >> octave);
}

static uint64_t magnitude_of(int64_t value)
{
	return value < 0 ? 0u - (uint64_t)value : (uint64_t)value;
}

/* The core multiplies only 32 by 32 bits; the compiler would multiply 64 by 64. */
static inline uint64_t square(uint32_t value)
{
	uint32_t low = value & 0xffffu;
	uint32_t high = value >> 16;
	uint32_t low_square = low * low;
	uint32_t middle = low * high;
	uint32_t high_square = high * high;

	return ((uint64_t)high_square << 32) + ((uint64_t)middle << 17) + low_square;
}

static __attribute__((noinline)) void outliers_add(struct histogram *histogram, int64_t value, uint64_t time)
{
	uint32_t place = histogram->least_place;

	if (histogram->outlier_count < OUTLIER_COUNT)
		place = histogram->outlier_count++;
	histogram->outliers[place] =
		(struct outlier){.value = value, .time = time, .index = histogram->count};
	histogram->least_magnitude = UINT64_MAX;
	for (uint32_t i = 0; i < histogram->outlier_count; i++) {
		uint64_t other = magnitude_of(histogram->outliers[i].value);

		if (other < histogram->least_magnitude) {
			histogram->least_magnitude = other;
			histogram->least_place = i;
		}
	}
}

void histogram_clear(struct histogram *histogram)
{
	*histogram = (struct histogram){.min = INT64_MAX, .max = INT64_MIN};
}

void histogram_add(struct histogram *histogram, int64_t value, uint64_t time)
{
	uint64_t magnitude = magnitude_of(value);
	/* 34 s and more, which need a line without an edge for so long, count as this. */
	uint32_t limited = magnitude > UINT32_MAX ? UINT32_MAX : (uint32_t)magnitude;
	uint64_t squared = square(limited);

	if (histogram->outlier_count < OUTLIER_COUNT || magnitude > histogram->least_magnitude)
		outliers_add(histogram, value, time);
	histogram->bins[value < 0][bin(limited)]++;
	histogram->count++;
	histogram->sum += value;
	if (value < histogram->min)
		histogram->min = value;
	if (value > histogram->max)
		histogram->max = value;
	histogram->squares_low += squared;
	if (histogram->squares_low < squared)
		histogram->squares_high++;
}
