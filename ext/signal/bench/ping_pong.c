// SPDX-License-Identifier: MIT
/*
 * The least program that measures a round trip over two eventfds: two threads, FIFO 98, locked memory,
 * nothing else. What `rtgauge probe response` is held against. ping_pong MASTER_CPU SLAVE_CPU INTERVAL_NS
 * COUNT; prints each round trip in ns, a line each.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int there, back;

static void settle(int cpu)
{
	struct sched_param priority = {.sched_priority = 98};
	cpu_set_t own;

	CPU_ZERO(&own);
	CPU_SET((size_t)cpu, &own);
	if (sched_setaffinity(0, sizeof(own), &own) || sched_setscheduler(0, SCHED_FIFO, &priority)) {
		perror("ping_pong: cannot choose the CPU or set the priority");
		exit(3);
	}
}

static void *answer(void *cpu)
{
	uint64_t value;

	settle(*(int *)cpu);
	while (read(there, &value, sizeof(value)) == (ssize_t)sizeof(value)) {
		value = 1;
		if (write(back, &value, sizeof(value)) < 0)
			break;
	}
	return NULL;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(int argc, char **argv)
{
	int cpu[2], wish = 0, dma = open("/dev/cpu_dma_latency", O_RDWR);
	int64_t interval_ns, *trips, due_ns;
	long count;
	pthread_t slave;

	if (argc != 5)
		return 2;
	cpu[0] = atoi(argv[1]);
	cpu[1] = atoi(argv[2]);
	interval_ns = atoll(argv[3]);
	count = atol(argv[4]);
	trips = calloc((size_t)count, sizeof(*trips));
	there = eventfd(0, 0);
	back = eventfd(0, 0);
	if (!trips || there < 0 || back < 0 || mlockall(MCL_CURRENT | MCL_FUTURE))
		return 3;
	if (dma >= 0 && write(dma, &wish, sizeof(wish)) < 0)
		perror("ping_pong: cannot write to /dev/cpu_dma_latency");
	if (pthread_create(&slave, NULL, answer, &cpu[1]))
		return 3;
	settle(cpu[0]);
	due_ns = now_ns() + 20000000;
	for (long i = 0; i < count; i++) {
		struct timespec due = {due_ns / 1000000000, due_ns % 1000000000};
		uint64_t value = 1;
		int64_t sent_ns;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		sent_ns = now_ns();
		if (write(there, &value, sizeof(value)) < 0 || read(back, &value, sizeof(value)) < 0)
			return 3;
		trips[i] = now_ns() - sent_ns;
		do
			due_ns += interval_ns;
		while (due_ns < now_ns());
	}
	for (long i = 0; i < count; i++)
		printf("%lld\n", (long long)trips[i]);
	return 0;
}
