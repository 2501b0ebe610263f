/* SPDX-License-Identifier: MIT */
/* Shared by the files of RTAI's runtime: the clock, and the calling thread's task. */
#ifndef RTGAUGE_LXRT_H
#define RTGAUGE_LXRT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct rt_task_struct;

/*
 * RTAI's time base, the processor's cycle counter, as CLOCK_MONOTONIC: equal at the start of the program,
 * then at RTAI's own rate, which nothing adjusts. It is read without a system call, which would hand a
 * thread to Linux, and without the kernel's page of times, which Linux may be writing when it is
 * interrupted.
 */
int64_t lxrt_now_ns(void);

/* Starts the clock; hz: the calibrated frequency of the time base. */
void lxrt_clock_begin(int64_t hz);

/* A time of lxrt_now_ns as a count of the time base, for calls of RTAI; and a length. */
long long lxrt_count_at(int64_t time_ns);
int64_t lxrt_count_ns(long long count);

/* Makes the calling thread a task of RTAI that Linux still schedules. NULL: RTAI has none left. */
struct rt_task_struct *lxrt_own_task(void);

/* Deletes all semaphores of this process, which RTAI does not free when it ends. */
void lxrt_delete_semaphores(void);

/* The calling thread is under RTAI's scheduler, in hard real time. */
extern _Thread_local bool lxrt_hard;

/* The values of policy_set, for the task. */
extern _Thread_local int lxrt_priority;

#endif
