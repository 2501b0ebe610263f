/* SPDX-License-Identifier: MIT */
/* What the files of RTAI's runtime share: the clock, and the calling thread's task. */
#ifndef RTGAUGE_LXRT_H
#define RTGAUGE_LXRT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct rt_task_struct;

/*
 * RTAI's time base, the processor's cycle counter, as CLOCK_MONOTONIC. Both are equal when the program
 * starts; then it runs at RTAI's own rate, which nothing adjusts. Reading it needs no system call, which
 * would move a thread to Linux, and not the kernel's page of times, which Linux may be writing when it is
 * interrupted.
 */
int64_t lxrt_now_ns(void);

/* Starts the clock; hz: the calibrated frequency of the time base. */
void lxrt_clock_begin(int64_t hz);

/* Converts a time of lxrt_now_ns, or a length, to a count of the time base, for RTAI's calls. */
long long lxrt_count_at(int64_t time_ns);
int64_t lxrt_count_ns(long long count);

/* Makes the calling thread a task of RTAI that Linux still schedules. NULL: RTAI has no task left. */
struct rt_task_struct *lxrt_own_task(void);

/* Deletes all semaphores of this process, which RTAI does not free when it ends. */
void lxrt_delete_semaphores(void);

/* Whether the calling thread is under RTAI's scheduler, in hard real time. */
extern _Thread_local bool lxrt_hard;

/* The values of policy_set, for the later task. */
extern _Thread_local int lxrt_priority;

#endif
