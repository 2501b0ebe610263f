/* SPDX-License-Identifier: MIT */
/* The scheduling policy and priority of a measuring thread. */
#ifndef RTGAUGE_POLICY_H
#define RTGAUGE_POLICY_H

#include <sched.h>
#include <sys/types.h>

enum policy { POLICY_FIFO, POLICY_RR, POLICY_OTHER, POLICY_DEADLINE };

extern const char *const policy_names[]; /* except deadline, which has no priority (rt/deadline.h) */
extern const char *const policy_all_names[];

/*
 * The kernel's call for one thread (tid 0: the calling thread); -1 with errno. By POSIX's rules, the C
 * library's own call is not for threads, so musl's always refuses.
 */
int policy_sched_setscheduler(pid_t tid, int kernel_policy, const struct sched_param *param);

/* Gives the calling thread this policy, which is not POLICY_DEADLINE. Returns 0 or an errno. POLICY_OTHER
 * ignores priority. */
int policy_set(enum policy policy, int priority);

/* Tries the policy, and restores the old one. Returns 0 or the errno. */
int policy_try(enum policy policy, int priority);

#endif
