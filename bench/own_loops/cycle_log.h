/* SPDX-License-Identifier: MIT */
/*
 * A loop's own account of its cycles, kept in memory and written when the program ends, so that it does not
 * disturb the loop. For C and C++. The file: records of four little-endian 64-bit numbers.
 */
#ifndef CYCLE_LOG_H
#define CYCLE_LOG_H

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)
#define RECORDS_MAX 400000

enum fate { RUN, CAUGHT_UP, SKIPPED, DATA };

struct cycle {
	int64_t release_ns;	  /* 0: the program does not know it */
	int64_t start_ns, end_ns; /* end 0: not over; both 0: skipped */
	int64_t fate;
};

static struct {
	int64_t period_ns, work_ns, long_ns, trouble_ns;
	int64_t long_every; /* 0: no long work */
	int64_t calls;	    /* calls in each cycle of the loop `calls` */
	int priority;	    /* 0: no real-time policy */
	int cpu;	    /* -1: any */
	const char *kind, *log;
} options = {1000000, 100000, 3500000, 8 * NS_PER_S, 0, 0, 0, -1, NULL, NULL};

static struct cycle *cycles;
static volatile int64_t cycle_count;

static inline int64_t now_on(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static inline int64_t now(void)
{
	return now_on(CLOCK_MONOTONIC);
}

static inline struct timespec timespec_of(int64_t ns)
{
	struct timespec t = {ns / NS_PER_S, ns % NS_PER_S};

	return t;
}

static inline void busy(int64_t ns)
{
	int64_t end_ns = now() + ns;

	while (now() < end_ns)
		;
}

/* A cycle starts. */
static inline void begins(int64_t release_ns, enum fate fate)
{
	struct cycle *c = &cycles[cycle_count];

	c->release_ns = release_ns;
	c->fate = fate;
	c->end_ns = 0;
	c->start_ns = now();
	cycle_count = cycle_count + 1;
}

static inline void ends(void)
{
	cycles[cycle_count - 1].end_ns = now();
}

static inline void skips(int64_t release_ns)
{
	struct cycle c = {release_ns, 0, 0, SKIPPED};

	cycles[cycle_count] = c;
	cycle_count = cycle_count + 1;
}

/* The work of one cycle, which is long in each `long_every`th. */
static inline void work(void)
{
	static int64_t done;

	done++;
	busy(options.long_every && done % options.long_every == 0 ? options.long_ns : options.work_ns);
}

/* Writes the log and ends. Only calls that a signal handler may make. */
static void write_log(int signal_number)
{
	size_t left = (size_t)cycle_count * sizeof(*cycles), done = 0;
	int file = open(options.log, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	(void)signal_number;
	while (file >= 0 && done < left) {
		ssize_t written = write(file, (const char *)cycles + done, left - done);

		if (written <= 0)
			_exit(1);
		done += (size_t)written;
	}
	_exit(file < 0);
}

static inline void be_real_time(void)
{
	struct sched_param param;

	memset(&param, 0, sizeof(param));
	param.sched_priority = options.priority;
	if (options.priority && sched_setscheduler(0, SCHED_FIFO, &param)) {
		perror("SCHED_FIFO");
		exit(1);
	}
	if (options.cpu >= 0) {
		cpu_set_t cpus;

		CPU_ZERO(&cpus);
		CPU_SET(options.cpu, &cpus);
		if (sched_setaffinity(0, sizeof(cpus), &cpus))
			perror("affinity");
	}
}

/* KIND --log FILE [--period-us N] [--work-us N] [--long-us N] [--long-every N] [--fifo N] [--cpu N]
   [--trouble-ms N] [--calls N] */
static inline void read_options(int argc, char **argv)
{
	if (argc < 2)
		exit(2);
	options.kind = argv[1];
	for (int i = 2; i + 1 < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];
		int64_t number = atoll(value);

		if (!strcmp(name, "--log"))
			options.log = value;
		else if (!strcmp(name, "--period-us"))
			options.period_ns = number * 1000;
		else if (!strcmp(name, "--work-us"))
			options.work_ns = number * 1000;
		else if (!strcmp(name, "--long-us"))
			options.long_ns = number * 1000;
		else if (!strcmp(name, "--trouble-ms"))
			options.trouble_ns = number * 1000000;
		else if (!strcmp(name, "--long-every"))
			options.long_every = number;
		else if (!strcmp(name, "--calls"))
			options.calls = number;
		else if (!strcmp(name, "--fifo"))
			options.priority = (int)number;
		else if (!strcmp(name, "--cpu"))
			options.cpu = (int)number;
		else
			exit(2);
	}
	if (!options.log)
		exit(2);
	cycles = (struct cycle *)calloc(RECORDS_MAX, sizeof(*cycles));
	if (!cycles)
		exit(1);
	signal(SIGTERM, write_log);
	mlockall(MCL_CURRENT | MCL_FUTURE);
}

#endif
