/* SPDX-License-Identifier: MIT */
/* What the kernel counted for a thread. */
#ifndef RTGAUGE_USAGE_H
#define RTGAUGE_USAGE_H

#include <stdint.h>

struct usage {
	int64_t voluntary_switches;
	int64_t involuntary_switches;
	int64_t minor_faults;
	int64_t major_faults;
	int64_t run_delay_ns; /* -1: cannot be read */
	int64_t cpu_ns;
};

/* A descriptor of the calling thread's schedstat, opened before measuring; -1 where the kernel has none. */
int usage_open(void);

/* The calling thread's counts up to now. */
void usage_read(int schedstat, struct usage *usage);

#endif
