// SPDX-License-Identifier: MIT
#include "rt/policy.h"

#include <errno.h>
#include <pthread.h>

#include "rt/deadline.h"

const char *const policy_names[] = {"fifo", "rr", "other", NULL};
const char *const policy_all_names[] = {"fifo", "rr", "other", "deadline", NULL};

int policy_sched_setscheduler(pid_t tid, int kernel_policy, const struct sched_param *param)
{
	return sched_setscheduler(tid, kernel_policy, param);
}

int policy_set(enum policy policy, int priority)
{
	static const int core_policy[] = {SCHED_FIFO, SCHED_RR, SCHED_OTHER};
	struct sched_param param = {.sched_priority = policy == POLICY_OTHER ? 0 : priority};

	return pthread_setschedparam(pthread_self(), core_policy[policy], &param);
}

/* Any user whom Cobalt admits may use every priority. */
int policy_try(enum policy policy, int priority)
{
	(void)policy;
	(void)priority;
	return 0;
}

/* Cobalt has no such policy. */
int deadline_set(pid_t tid, const struct deadline *deadline)
{
	(void)tid;
	(void)deadline;
	return EOPNOTSUPP;
}
