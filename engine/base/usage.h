/* SPDX-License-Identifier: MIT */
/* The kernel's counts for a thread. */
#ifndef RTGAUGE_USAGE_H
#define RTGAUGE_USAGE_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/clock.h"

/* Who counts: Linux, or a co-kernel that does not distinguish kinds of switches. Both counts then include
 * all switches. */
#ifdef RTGAUGE_COKERNEL
enum { USAGE_OF_COKERNEL = 1 };
#else
enum { USAGE_OF_COKERNEL = 0 };
#endif

struct usage {
	int64_t voluntary_switches;
	int64_t involuntary_switches;
	int64_t minor_faults;
	int64_t major_faults;
	int64_t run_delay_ns; /* -1 in this and other counts: cannot be read */
	int64_t cpu_ns;
	int64_t mode_switches; /* how often a co-kernel moved the thread to Linux; not set on Linux */
};

/* Opens the calling thread's schedstat before measuring; -1 if the kernel has none. */
int usage_open(void);

/* Returns the calling thread's counts up to now. */
void usage_read(int schedstat, struct usage *usage);

/* Returns another thread's CPU time, by its clock. On a co-kernel, it is the time that tid had there; with
 * tid 0, always by the clock. 0 if the thread has ended. */
int64_t usage_cpu_ns(pid_t tid, clockid_t clock);

/* Returns how often a co-kernel moved another thread, even of another process, to Linux; -1: unknown. */
#ifdef RTGAUGE_COBALT
int64_t usage_mode_switches(pid_t tid);
#else
static inline int64_t usage_mode_switches(pid_t tid)
{
	(void)tid;
	return -1;
}
#endif

/* Returns the calling thread's CPU time up to now. On a co-kernel, reading Linux's clock for it would move
 * the thread to Linux. */
#ifdef RTGAUGE_COKERNEL
int64_t usage_own_cpu_ns(void);
#else
static inline int64_t usage_own_cpu_ns(void)
{
	return clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
}
#endif

#endif
