/* SPDX-License-Identifier: MIT */
/* Converts the expiries of timers on the kernel's clocks to CLOCK_MONOTONIC. */
#ifndef RTGAUGE_WATCH_CLOCK_OFFSETS_H
#define RTGAUGE_WATCH_CLOCK_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

/* What the clocks of timers are ahead of CLOCK_MONOTONIC. */
struct clock_offsets {
	int64_t real_ns, boot_ns, tai_ns;
	int64_t real_before_ns; /* before the wall clock was last set */
};

/* Reads the clocks. */
void clock_offsets_begin(struct clock_offsets *offsets);

/* Reads the clocks again. Returns by how much (ns) the wall clock was set since the last call; 0: it was
 * not. */
int64_t clock_offsets_read(struct clock_offsets *offsets);

/* Returns a timer's expiry on CLOCK_MONOTONIC. now_ns: when it was armed. *wall: whether it is on the wall
 * clock. */
int64_t clock_offsets_monotonic(const struct clock_offsets *offsets, int64_t expiry_ns, int64_t now_ns,
				bool *wall);

#endif
