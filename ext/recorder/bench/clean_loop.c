// SPDX-License-Identifier: MIT
/* A real-time loop of 1 kHz that breaks no rule: it shares a lock with priority inheritance with a thread of
 * a lower priority, and wakes an ordinary thread that writes a log. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock;
static volatile long shared;
static int logged;

static void *lower(void *unused)
{
	const struct timespec pause = {.tv_nsec = 300000};

	for (;;) {
		pthread_mutex_lock(&lock);
		for (int i = 0; i < 50000; i++)
			shared++;
		pthread_mutex_unlock(&lock);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return unused;
}

static void *write_log(void *unused)
{
	uint64_t count;

	while (read(logged, &count, sizeof(count)) == sizeof(count)) {
		FILE *file = fopen("clean_loop.log", "w");

		fprintf(file, "%ld\n", shared);
		fclose(file);
	}
	return unused;
}

int main(void)
{
	struct sched_param low = {.sched_priority = 10};
	const uint64_t one = 1;
	pthread_mutexattr_t attributes;
	pthread_attr_t real_time;
	struct timespec next;
	pthread_t thread;

	mlockall(MCL_CURRENT | MCL_FUTURE);
	logged = eventfd(0, 0);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &attributes);
	pthread_attr_init(&real_time);
	pthread_attr_setinheritsched(&real_time, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&real_time, SCHED_FIFO);
	pthread_attr_setschedparam(&real_time, &low);
	if (pthread_create(&thread, &real_time, lower, NULL))
		return 1;
	pthread_attr_setschedpolicy(&real_time, SCHED_OTHER);
	low.sched_priority = 0;
	pthread_attr_setschedparam(&real_time, &low);
	if (pthread_create(&thread, &real_time, write_log, NULL))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int cycle = 0;; cycle++) {
		next.tv_nsec += 1000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_sec++;
			next.tv_nsec -= 1000000000;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		pthread_mutex_lock(&lock);
		shared++;
		pthread_mutex_unlock(&lock);
		if (cycle % 100 == 0 && write(logged, &one, sizeof(one)) != sizeof(one))
			abort();
	}
}
