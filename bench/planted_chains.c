// SPDX-License-Identifier: MIT
/*
 * planted_chains KIND: three threads, of which chain-a waits for chain-b, which waits for chain-c, once in 50
 * ms. KIND: pipe, socket, eventfd or condition, and processes (over pipes). chain-c sleeps or computes in
 * turn, for 6 ms. `wait_chains.py` compiles and watches it. Each cycle is a line: when the answer came, how
 * long a and b waited and how long c took (ns, by CLOCK_MONOTONIC), and what c did.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 50000000
#define ORIGIN_NS 6000000
#define LINES 4 /* a asks b, b answers a, b asks c, c answers b */

struct line {
	int ends[2];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool full;
};

static struct shared {
	struct line lines[LINES];
	int64_t middle_ns, origin_ns;
	int cycle;
} * shared;
static const char *kind;

static void check(bool right)
{
	if (!right)
		abort();
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void open_line(struct line *line)
{
	if (!strcmp(kind, "socket"))
		check(!socketpair(AF_UNIX, SOCK_STREAM, 0, line->ends));
	else if (!strcmp(kind, "eventfd"))
		check((line->ends[0] = line->ends[1] = eventfd(0, 0)) >= 0);
	else
		check(!pipe(line->ends));
	pthread_mutex_init(&line->lock, NULL);
	pthread_cond_init(&line->changed, NULL);
}

static void give(struct line *line)
{
	const uint64_t one = 1;

	if (strcmp(kind, "condition") != 0) {
		check(write(line->ends[1], &one, sizeof(one)) == sizeof(one));
		return;
	}
	pthread_mutex_lock(&line->lock);
	line->full = true;
	pthread_mutex_unlock(&line->lock);
	pthread_cond_signal(&line->changed);
}

static void take(struct line *line)
{
	uint64_t one;

	if (strcmp(kind, "condition") != 0) {
		check(read(line->ends[0], &one, sizeof(one)) == sizeof(one));
		return;
	}
	pthread_mutex_lock(&line->lock);
	while (!line->full)
		pthread_cond_wait(&line->changed, &line->lock);
	line->full = false;
	pthread_mutex_unlock(&line->lock);
}

static void *middle(void *unused)
{
	prctl(PR_SET_NAME, "chain-b");
	for (;;) {
		int64_t since_ns;

		take(&shared->lines[0]);
		since_ns = now_ns();
		give(&shared->lines[2]);
		take(&shared->lines[3]);
		shared->middle_ns = now_ns() - since_ns;
		give(&shared->lines[1]);
	}
	return unused;
}

static void *origin(void *unused)
{
	prctl(PR_SET_NAME, "chain-c");
	for (;;) {
		int64_t since_ns;

		take(&shared->lines[2]);
		since_ns = now_ns();
		if (shared->cycle % 2)
			nanosleep(&(struct timespec){.tv_nsec = ORIGIN_NS}, NULL);
		else
			while (now_ns() - since_ns < ORIGIN_NS)
				;
		shared->origin_ns = now_ns() - since_ns;
		give(&shared->lines[3]);
	}
	return unused;
}

static void begin(void *(*run)(void *))
{
	pthread_t thread;

	if (strcmp(kind, "processes") != 0)
		check(!pthread_create(&thread, NULL, run, NULL));
	else if (!fork()) {
		prctl(PR_SET_PDEATHSIG, 9);
		run(NULL);
	}
}

int main(int argc, char **argv)
{
	const struct sched_param real_time = {.sched_priority = 40};
	struct timespec next;

	check(argc == 2);
	kind = argv[1];
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	for (int i = 0; i < LINES; i++)
		open_line(&shared->lines[i]);
	check(!sched_setscheduler(0, SCHED_FIFO, &real_time));
	begin(middle);
	begin(origin);
	prctl(PR_SET_NAME, "chain-a");
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;; shared->cycle++) {
		int64_t since_ns;

		next.tv_nsec += PERIOD_NS;
		if (next.tv_nsec >= 1000000000) {
			next.tv_sec++;
			next.tv_nsec -= 1000000000;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		since_ns = now_ns();
		give(&shared->lines[0]);
		take(&shared->lines[1]);
		printf("%lld %lld %lld %lld %s\n", (long long)now_ns(), (long long)(now_ns() - since_ns),
		       (long long)shared->middle_ns, (long long)shared->origin_ns,
		       shared->cycle % 2 ? "sleeps" : "computes");
	}
}
