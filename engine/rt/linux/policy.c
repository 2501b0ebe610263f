// SPDX-License-Identifier: MIT
#include "rt/policy.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const policy_names[] = {"fifo", "rr", "other", NULL};
const char *const policy_all_names[] = {"fifo", "rr", "other", "deadline", NULL};

int policy_sched_setscheduler(pid_t tid, int kernel_policy, const struct sched_param *param)
{
	return (int)syscall(SYS_sched_setscheduler, tid, kernel_policy, param);
}

int policy_set(enum policy policy, int priority)
{
	static const int kernel_policy[] = {SCHED_FIFO, SCHED_RR, SCHED_OTHER};
	struct sched_param param = {.sched_priority = policy == POLICY_OTHER ? 0 : priority};

	return policy_sched_setscheduler(0, kernel_policy[policy], &param) ? errno : 0;
}

int policy_try(enum policy policy, int priority)
{
	struct sched_param before;
	int kernel_policy = (int)syscall(SYS_sched_getscheduler, 0);
	int error;

	if (kernel_policy < 0 || syscall(SYS_sched_getparam, 0, &before))
		return errno;
	error = policy_set(policy, priority);
	if (!error && policy_sched_setscheduler(0, kernel_policy, &before))
		error = errno;
	return error;
}
