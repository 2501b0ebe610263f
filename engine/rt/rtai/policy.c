// SPDX-License-Identifier: MIT
#include "rt/policy.h"

#include <errno.h>
#include <sched.h>

#include "rt/deadline.h"
#include "rt/rtai/lxrt.h"

const char *const policy_names[] = {"fifo", "rr", "other", NULL};
const char *const policy_all_names[] = {"fifo", "rr", "other", "deadline", NULL};

_Thread_local int lxrt_priority;

int policy_sched_setscheduler(pid_t tid, int kernel_policy, const struct sched_param *param)
{
	return sched_setscheduler(tid, kernel_policy, param);
}

/* Set for Linux, and kept for the thread's later task. */
int policy_set(enum policy policy, int priority)
{
	static const int kernel_policy[] = {
		[POLICY_FIFO] = SCHED_FIFO,
		[POLICY_RR] = SCHED_RR,
		[POLICY_OTHER] = SCHED_OTHER,
	};
	struct sched_param param = {.sched_priority = policy == POLICY_OTHER ? 0 : priority};

	if (policy == POLICY_DEADLINE)
		return EINVAL;
	lxrt_priority = param.sched_priority;
	return sched_setscheduler(0, kernel_policy[policy], &param) ? errno : 0;
}

int policy_try(enum policy policy, int priority)
{
	int error = policy_set(policy, priority);

	policy_set(POLICY_OTHER, 0);
	return error;
}

/* RTAI has no such policy. */
int deadline_set(pid_t tid, const struct deadline *deadline)
{
	(void)tid;
	(void)deadline;
	return EOPNOTSUPP;
}
