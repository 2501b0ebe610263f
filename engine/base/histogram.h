/* SPDX-License-Identifier: MIT */
/* The histogram of docs/formats/histogram.md, with exact 1 us bins up to 10 ms, and 1 % or better from 10
   ns to 10 s. */
#ifndef RTGAUGE_HISTOGRAM_H
#define RTGAUGE_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

#define HISTOGRAM_BINS 12101 /* the last one counts all values of 10 s or more */

#define HISTOGRAM_PAGE 128
#define HISTOGRAM_PAGES ((HISTOGRAM_BINS + HISTOGRAM_PAGE - 1) / HISTOGRAM_PAGE)

/* Long latencies are in few places, so only pages whose bins were ever used have memory. */
struct histogram {
	uint32_t *page[HISTOGRAM_PAGES];
	uint32_t low, high; /* bins outside of low..high are empty; low > high: all are empty */
};

/* Returns the bin of a value >= 0 (ns). */
uint32_t histogram_bin(int64_t value_ns);

/* Returns the largest value that a bin holds (ns); INT64_MAX for the last bin. */
int64_t histogram_upper(uint32_t bin);

/* Clears a histogram, which must be all zero before its first use. It keeps its memory until it is freed. */
void histogram_clear(struct histogram *h);
void histogram_free(struct histogram *h);

/* Counts a value, or returns false if there is no memory for it. Not for measuring threads. */
bool histogram_add(struct histogram *h, int64_t value_ns);

/*
 * Writes the bins as Base64 VLQ (docs/formats/stream.md), in ascending order of the values; bin -b has the
 * negatives of bin b (NULL: there are none). Each entry is the distance to the previous bin (for the first
 * bin, to 0) and the count.
 */
void histogram_json(const struct histogram *negatives, const struct histogram *h, const char *key,
		    struct json *j);

static inline uint32_t histogram_count(const struct histogram *h, uint32_t bin)
{
	const uint32_t *page = h->page[bin / HISTOGRAM_PAGE];

	return page ? page[bin % HISTOGRAM_PAGE] : 0;
}

#endif
