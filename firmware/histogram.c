/* SPDX-License-Identifier: MIT */
#include "histogram.h"

static unsigned bin(uint64_t magnitude)
{
	unsigned octave = 0;

	if (magnitude > UINT32_MAX)
		return HISTOGRAM_BINS - 1u;
	for (uint32_t rest = (uint32_t)magnitude; rest >= 512u; rest >>= 1)
		octave++;
	return octave * 256u + (unsigned)(magnitude >> octave);
}

static uint64_t magnitude_of(int64_t value)
{
	return value < 0 ? 0u - (uint64_t)value : (uint64_t)value;
}

static void outliers_add(struct histogram *histogram, int64_t value, uint64_t time)
{
	uint32_t place = histogram->outlier_count;

	if (place < OUTLIER_COUNT)
		histogram->outlier_count++;
	else if (magnitude_of(value) > magnitude_of(histogram->outliers[histogram->least_outlier].value))
		place = histogram->least_outlier;
	else
		return;
	histogram->outliers[place] = (struct outlier){.value = value, .time = time, .index = histogram->count};
	for (uint32_t i = 0; i < histogram->outlier_count; i++)
		if (magnitude_of(histogram->outliers[i].value) <
		    magnitude_of(histogram->outliers[histogram->least_outlier].value))
			histogram->least_outlier = i;
}

void histogram_clear(struct histogram *histogram)
{
	*histogram = (struct histogram){.min = INT64_MAX, .max = INT64_MIN};
}

void histogram_add(struct histogram *histogram, int64_t value, uint64_t time)
{
	uint64_t magnitude = magnitude_of(value);
	/* The square of what fits 32 bits; of more, which takes half a minute of silence, the square of the largest. */
	uint64_t square = magnitude > UINT32_MAX ? UINT64_MAX : magnitude * magnitude;

	outliers_add(histogram, value, time);
	histogram->bins[value < 0][bin(magnitude)]++;
	histogram->count++;
	histogram->sum += value;
	if (value < histogram->min)
		histogram->min = value;
	if (value > histogram->max)
		histogram->max = value;
	histogram->squares_low += square;
	if (histogram->squares_low < square)
		histogram->squares_high++;
}
