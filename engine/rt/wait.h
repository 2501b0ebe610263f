/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_WAIT_H
#define RTGAUGE_WAIT_H

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Sleeps until `due` on CLOCK_MONOTONIC, or until a signal. The C library's clock_nanosleep is a cancellation
 * point; getting ready for a cancellation and back costs more than all else that the measured path does in
 * user space, and half of it lies between the wake-up and the reading of the clock. Nothing here is ever
 * cancelled. Where time_t is not the kernel's own 64-bit one the C library has to translate. Of a co-kernel
 * only the name is taken (rt/runtime.h).
 */
static inline void wait_until_monotonic(const struct timespec *due)
{
#if defined(__LP64__) && !defined(RTGAUGE_COKERNEL)
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL);
#else
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL);
#endif
}

#endif
