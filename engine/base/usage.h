/* SPDX-License-Identifier: MIT */
/* What the kernel counted for a thread. */
#ifndef RTGAUGE_USAGE_H
#define RTGAUGE_USAGE_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/clock.h"

/* Who counts: Linux, or a co-kernel, which does not tell one kind of switch from the other. Both counts are
 * then of all. */
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
	int64_t run_delay_ns; /* this and other counts -1: cannot be read */
	int64_t cpu_ns;
	int64_t mode_switches; /* how often a co-kernel handed the thread to Linux; not set on Linux */
};

/* A descriptor of the calling thread's schedstat, opened before measuring; -1 where the kernel has none. */
int usage_open(void);

/* The calling thread's counts up to now. */
void usage_read(int schedstat, struct usage *usage);

/* CPU time of another thread by its clock: on a co-kernel what its thread tid had there; tid 0: by the clock
 * in any case. 0 where it has gone. */
int64_t usage_cpu_ns(pid_t tid, clockid_t clock);

/* How often a co-kernel handed another thread, also of another process, to Linux; -1: unknown. */
#ifdef RTGAUGE_COBALT
int64_t usage_mode_switches(pid_t tid);
#else
static inline int64_t usage_mode_switches(pid_t tid)
{
	(void)tid;
	return -1;
}
#endif

/* CPU time of the calling thread up to now. On a co-kernel Linux's clock of it would hand the thread to
 * Linux. */
#ifdef RTGAUGE_COKERNEL
int64_t usage_own_cpu_ns(void);
#else
static inline int64_t usage_own_cpu_ns(void)
{
	return clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
}
#endif

#endif
