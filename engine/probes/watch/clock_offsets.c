// SPDX-License-Identifier: MIT
#include "probes/watch/clock_offsets.h"

#include <stdlib.h>

#include "base/clock.h"

#define SET_NS (NS_PER_S / 1000) /* less is a correction by NTP, or the time between two readings */

static int64_t ahead_ns(clockid_t clock)
{
	int64_t before_ns = clock_now_ns(CLOCK_MONOTONIC), there_ns = clock_now_ns(clock);

	return there_ns - (before_ns + clock_now_ns(CLOCK_MONOTONIC)) / 2;
}

int64_t clock_offsets_read(struct clock_offsets *offsets)
{
	int64_t real_ns = ahead_ns(CLOCK_REALTIME), set_ns = real_ns - offsets->real_ns;

	offsets->boot_ns = ahead_ns(CLOCK_BOOTTIME);
	offsets->tai_ns = ahead_ns(CLOCK_TAI);
	if (set_ns < SET_NS && set_ns > -SET_NS)
		set_ns = 0;
	if (set_ns)
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
