/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_WAIT_H
#define RTGAUGE_WAIT_H

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Sleeps until `due` on CLOCK_MONOTONIC, or until a signal. The C library's clock_nanosleep is a
 * cancellation point. Preparing for a cancellation costs more than everything else that the measured path
 * does in user space, and half of this cost is between the wake-up and the clock reading. Nothing is ever
 * cancelled here, so this makes the system call itself, on x86-64 without syscall(), which shifts the
 * arguments first: 6 instructions instead of 18. If time_t is not the kernel's own 64-bit type, the C library
 * must convert. On a co-kernel only the name is used (rt/runtime.h).
 */
static inline void wait_until_monotonic(const struct timespec *due)
{
#if defined(__x86_64__) && defined(__LP64__) && !defined(RTGAUGE_COKERNEL)
	register struct timespec *remaining __asm__("r10") = NULL;
	long number = SYS_clock_nanosleep;

	__asm__ volatile("syscall"
			 : "+a"(number)
			 : "D"(CLOCK_MONOTONIC), "S"(TIMER_ABSTIME), "d"(due), "r"(remaining)
			 : "rcx", "r11", "memory");
#elif defined(__LP64__) && !defined(RTGAUGE_COKERNEL)
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL);
#else
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL);
#endif
}

#endif
