// SPDX-License-Identifier: MIT
/*
 * A real-time thread of a low priority computes for 2.3 of 3 s, next to a thread that is not real-time: the
 * scheduler's server gives that one some of the CPU. A third, of a higher priority, works every 4 ms.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void compute(long long ns)
{
	for (long long end = now_ns() + ns; now_ns() < end;)
		;
}

static void become(const char *name, int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	prctl(PR_SET_NAME, name);
	if (sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param))
		exit(1);
}

static void *low(void *argument)
{
	(void)argument;
	become("low", 30);
	for (;;) {
		usleep(700000);
		compute(2300000000LL);
	}
}

static void *fair(void *argument)
{
	(void)argument;
	become("fair", 0);
	for (;;)
		compute(1000000000LL);
}

int main(void)
{
	struct timespec next;
	pthread_t thread;

	mlockall(MCL_CURRENT | MCL_FUTURE);
	/* First, or the others could keep this thread from the CPU before it is real-time. */
	become("victim", 40);
	if (pthread_create(&thread, NULL, low, NULL) || pthread_create(&thread, NULL, fair, NULL))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		next.tv_nsec += 4000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		compute(20000);
	}
}
