// SPDX-License-Identifier: MIT
#include "base/usage.h"

#include <cobalt/sys/cobalt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

int usage_open(void)
{
	return -1;
}

/* One call that keeps the thread in Cobalt. Reading Linux's counters would move it to Linux. */
void usage_read(int schedstat, struct usage *usage)
{
	struct cobalt_threadstat stat = {0};

	(void)schedstat;
	cobalt_thread_stat(0, &stat);
	usage->voluntary_switches = usage->involuntary_switches = (int64_t)stat.csw;
	usage->mode_switches = (int64_t)stat.msw;
	usage->minor_faults = stat.pf;
	usage->major_faults = -1; /* one count for both kinds */
	usage->cpu_ns = (int64_t)stat.xtime;
	usage->run_delay_ns = -1;
}

int64_t usage_own_cpu_ns(void)
{
	struct cobalt_threadstat stat = {0};

	cobalt_thread_stat(0, &stat);
	return (int64_t)stat.xtime;
}

int64_t usage_mode_switches(pid_t tid)
{
	struct cobalt_threadstat stat;

	return cobalt_thread_stat(tid, &stat) ? -1 : (int64_t)stat.msw;
}

int64_t usage_cpu_ns(pid_t tid, clockid_t clock)
{
	struct cobalt_threadstat stat;
	struct timespec used;

	if (tid)
		return cobalt_thread_stat(tid, &stat) ? 0 : (int64_t)stat.xtime;
	return syscall(SYS_clock_gettime, clock, &used) ? 0 : timespec_ns(&used);
}
