// SPDX-License-Identifier: MIT
#include "probes/watch/clock_offsets.h"

#include <stdlib.h>

#include "base/clock.h"

#define SET_NS (NS_PER_S / 1000) /* less is a correction by NTP, or the time between two readings */
#define CLOSE_NS (SET_NS / 10)
#define TRIES 10

/* Another task may run for milliseconds between two readings, which would look like a setting. So it tries
 * again until the readings are close. *unsure_ns: how far it may be off. */
static int64_t ahead_within_ns(clockid_t clock, int64_t *unsure_ns)
{
	int64_t best_ns = 0;

	*unsure_ns = INT64_MAX;
	for (int i = 0; i<TRIES && * unsure_ns> CLOSE_NS; i++) {
		int64_t before_ns = clock_now_ns(CLOCK_MONOTONIC), there_ns = clock_now_ns(clock);
		int64_t took_ns = clock_now_ns(CLOCK_MONOTONIC) - before_ns;

		if (took_ns < *unsure_ns) {
			*unsure_ns = took_ns;
			best_ns = there_ns - before_ns - took_ns / 2;
		}
	}
	return best_ns;
}

static int64_t ahead_ns(clockid_t clock)
{
	int64_t unsure_ns;

	return ahead_within_ns(clock, &unsure_ns);
}

int64_t clock_offsets_read(struct clock_offsets *offsets)
{
	int64_t unsure_ns, real_ns = ahead_within_ns(CLOCK_REALTIME, &unsure_ns);
	int64_t set_ns = real_ns - offsets->real_ns;

	offsets->boot_ns = ahead_ns(CLOCK_BOOTTIME);
	offsets->tai_ns = ahead_ns(CLOCK_TAI);
	if (llabs(set_ns) < SET_NS + unsure_ns) {
		if (unsure_ns <= CLOSE_NS)
			offsets->real_ns = real_ns;
		return 0;
	}
	offsets->real_before_ns = offsets->real_ns;
	offsets->real_ns = real_ns;
	return set_ns;
}

void clock_offsets_begin(struct clock_offsets *offsets)
{
	offsets->real_ns = ahead_ns(CLOCK_REALTIME);
	clock_offsets_read(offsets);
	offsets->real_before_ns = offsets->real_ns;
}

int64_t clock_offsets_monotonic(const struct clock_offsets *offsets, int64_t expiry_ns, int64_t now_ns,
				bool *wall)
{
	const int64_t ahead[] = {0, offsets->boot_ns, offsets->real_ns, offsets->real_before_ns,
				 offsets->tai_ns};
	int64_t best_ns = expiry_ns;

	*wall = false;
	for (size_t i = 1; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
		int64_t there_ns = expiry_ns - ahead[i];

		if (llabs(there_ns - now_ns) >= llabs(best_ns - now_ns))
			continue;
		best_ns = there_ns;
		*wall = i > 1;
	}
	return best_ns;
}
