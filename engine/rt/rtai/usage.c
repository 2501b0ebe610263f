// SPDX-License-Identifier: MIT
#include "base/usage.h"

#include <rtai_lxrt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "rt/rtai/lxrt.h"

#define STEP_NS                                                                                              \
	20000 /* longer than two readings of the clock, shorter than what takes the CPU away for long */

int usage_open(void)
{
	return -1;
}

/* RTAI counts only the time that a task has had; Linux's counters would hand the thread to Linux. How often a
 * thread was handed there is counted for all tasks together (runtime_conclude). */
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

/* RTAI adds the time that a task has had when the task gives the CPU away. Between two calls that follow each
 * other at once the thread has had it; what lies between others is not counted, so that it is never too much.
 */
int64_t usage_own_cpu_ns(void)
{
	static _Thread_local int64_t had_ns, last_ns;
	int64_t now_ns = lxrt_now_ns();

	if (now_ns - last_ns < STEP_NS)
		had_ns += now_ns - last_ns;
	last_ns = now_ns;
	return had_ns;
}

/* What Linux knows of the thread: while RTAI has it, nothing. */
int64_t usage_cpu_ns(pid_t tid, clockid_t clock)
{
	struct timespec used;

	(void)tid;
	return syscall(SYS_clock_gettime, clock, &used) ? 0 : timespec_ns(&used);
}
