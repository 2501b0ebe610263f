// SPDX-License-Identifier: MIT
#include "base/histogram.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct segment {
	int64_t first_ns;
	int64_t width_ns;
	uint32_t first_bin;
};

static const struct segment segments[] = {
	{0, 1, 0},
	{200, 2, 200},
	{500, 5, 350},
	{1000, 10, 450},
	{2000, 20, 550},
	{5000, 50, 700},
	{10000, 100, 800},
	{20000, 200, 900},
	{50000, 500, 1050},
	{100000, 1000, 1150},
	{10000000, 100000, 11050},
	{20000000, 200000, 11150},
	{50000000, 500000, 11300},
	{100000000, 1000000, 11400},
	{200000000, 2000000, 11500},
	{500000000, 5000000, 11650},
	{1000000000, 10000000, 11750},
	{2000000000, 20000000, 11850},
	{5000000000, 50000000, 12000},
	{10000000000, INT64_MAX, HISTOGRAM_BINS - 1},
};

uint32_t histogram_bin(int64_t value_ns)
{
	size_t s = sizeof(segments) / sizeof(segments[0]) - 1;

	while (value_ns < segments[s].first_ns)
		s--;
	return segments[s].first_bin + (uint32_t)((value_ns - segments[s].first_ns) / segments[s].width_ns);
}

int64_t histogram_upper(uint32_t bin)
{
	size_t s = sizeof(segments) / sizeof(segments[0]) - 1;

	if (bin >= HISTOGRAM_BINS - 1)
		return INT64_MAX;
	while (bin < segments[s].first_bin)
		s--;
	return segments[s].first_ns + (bin - segments[s].first_bin + 1) * segments[s].width_ns - 1;
}

void histogram_clear(struct histogram *h)
{
	for (uint32_t page = h->low / HISTOGRAM_PAGE; page <= h->high / HISTOGRAM_PAGE && h->low <= h->high;
	     page++) {
		if (h->page[page])
			memset(h->page[page], 0, HISTOGRAM_PAGE * sizeof(*h->page[page]));
	}
	h->low = HISTOGRAM_BINS;
	h->high = 0;
}

void histogram_free(struct histogram *h)
{
	for (size_t page = 0; page < HISTOGRAM_PAGES; page++)
		free(h->page[page]);
	memset(h, 0, sizeof(*h));
}

bool histogram_add(struct histogram *h, int64_t value_ns)
{
	uint32_t bin = histogram_bin(value_ns);
	uint32_t **page = &h->page[bin / HISTOGRAM_PAGE];

	if (!*page)
		*page = calloc(HISTOGRAM_PAGE, sizeof(**page));
	if (!*page)
		return false;
	(*page)[bin % HISTOGRAM_PAGE]++;
	if (bin < h->low)
		h->low = bin;
	if (bin > h->high)
		h->high = bin;
	return true;
}

void histogram_json(const struct histogram *negatives, const struct histogram *h, const char *key,
		    struct json *j)
{
	int64_t before = 0;

	json_vlq_open(j, key);
	for (uint32_t bin = negatives ? negatives->high : 0; negatives && bin && bin >= negatives->low;
	     bin--) {
		if (!histogram_count(negatives, bin))
			continue;
		json_vlq(j, -(int64_t)bin - before);
		json_vlq(j, histogram_count(negatives, bin));
		before = -(int64_t)bin;
	}
	for (uint32_t bin = h->low; bin <= h->high; bin++) {
		if (!histogram_count(h, bin))
			continue;
		json_vlq(j, bin - before);
		json_vlq(j, histogram_count(h, bin));
		before = bin;
	}
	json_vlq_close(j);
}
