// SPDX-License-Identifier: MIT
#include "base/usage.h"

#include <rtai_lxrt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "rt/rtai/lxrt.h"

#define STEP_NS                                                                                              \
	20000 /* longer than two clock readings, shorter than anything that takes the CPU away for long */

int usage_open(void)
{
	return -1;
}

/* RTAI counts only a task's CPU time; reading Linux's counters would move the thread to Linux. Moves to
 * Linux are counted for all tasks together (runtime_conclude). */
void usage_read(int schedstat, struct usage *usage)
{
	RTIME had[3] = {0};
	RT_TASK *own = lxrt_own_task();

	(void)schedstat;
	if (own)
		rt_get_exectime(own, had);
	*usage = (struct usage){
		.voluntary_switches = -1,
		.involuntary_switches = -1,
		.minor_faults = -1,
		.major_faults = -1,
		.run_delay_ns = -1,
		.cpu_ns = lxrt_count_ns(had[0]),
		.mode_switches = -1,
	};
}

/* RTAI adds a task's time when the task gives up the CPU. Between two successive calls, the thread had the
 * CPU. Other time is not counted, so the sum is never too large. */
int64_t usage_own_cpu_ns(void)
{
	static _Thread_local int64_t had_ns, last_ns;
	int64_t now_ns = lxrt_now_ns();

	if (now_ns - last_ns < STEP_NS)
		had_ns += now_ns - last_ns;
	last_ns = now_ns;
	return had_ns;
}

/* Linux sees nothing of the thread while RTAI has it. */
int64_t usage_cpu_ns(pid_t tid, clockid_t clock)
{
	struct timespec used;

	(void)tid;
	return syscall(SYS_clock_gettime, clock, &used) ? 0 : timespec_ns(&used);
}
