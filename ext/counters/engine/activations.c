// SPDX-License-Identifier: MIT
#include "ext/counters/engine/activations.h"

#include <linux/perf_event.h>
#include <string.h>

#define SLEEPS 255 /* states of a sleeping task; the bits above say whether it was preempted */

struct sample {
	uint64_t time_ns, count, enabled, running;
	uint64_t values[COUNTERS_MAX];
	uint64_t state;
};

static bool take(const unsigned char **at, const unsigned char *end, void *value, size_t size)
{
	if ((size_t)(end - *at) < size)
		return false;
	memcpy(value, *at, size);
	*at += size;
	return true;
}

/* The order of the members is in perf_event_open(2), PERF_RECORD_SAMPLE. */
static bool parse(const struct activations *all, const unsigned char *at, const unsigned char *end,
		  struct sample *sample)
{
	uint32_t raw_len;

	if (!take(&at, end, &sample->time_ns, sizeof(sample->time_ns)) ||
	    !take(&at, end, &sample->count, sizeof(sample->count)) ||
	    !take(&at, end, &sample->enabled, sizeof(sample->enabled)) ||
	    !take(&at, end, &sample->running, sizeof(sample->running)) || sample->count != all->counters ||
	    !take(&at, end, sample->values, all->counters * sizeof(sample->values[0])) ||
	    !take(&at, end, &raw_len, sizeof(raw_len)) || raw_len > (size_t)(end - at) ||
	    all->state_size > sizeof(sample->state) || all->state_offset > raw_len ||
	    all->state_size > raw_len - all->state_offset)
		return false;
	sample->state = 0;
	memcpy(&sample->state, at + all->state_offset, all->state_size); /* only big endian needs more */
	return true;
}

bool activations_take(struct activations *all, const unsigned char *record, size_t len,
		      struct activation *ended)
{
	struct perf_event_header header;
	struct sample sample;
	bool known = all->has_base;

	if (len < sizeof(header))
		return false;
	memcpy(&header, record, sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE) {
		uint64_t lost[2]; /* the event's number and the count */

		if (header.type == PERF_RECORD_LOST && len >= sizeof(header) + sizeof(lost)) {
			memcpy(lost, record + sizeof(header), sizeof(lost));
			all->lost += (int64_t)lost[1];
			all->has_base = false;
		}
		return false;
	}
	if (!parse(all, record + sizeof(header), record + len, &sample)) {
		all->lost++;
		all->has_base = false;
		return false;
	}
	if (!(sample.state & SLEEPS))
		return false;
	ended->end_ns = (int64_t)sample.time_ns;
	ended->whole = (int64_t)sample.enabled - all->enabled == (int64_t)sample.running - all->running;
	for (unsigned int i = 0; i < all->counters; i++) {
		ended->values[i] = (int64_t)(sample.values[i] - (uint64_t)all->base[i]);
		all->base[i] = (int64_t)sample.values[i];
	}
	all->enabled = (int64_t)sample.enabled;
	all->running = (int64_t)sample.running;
	all->has_base = true;
	return known;
}
