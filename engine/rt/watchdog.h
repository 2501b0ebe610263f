/* SPDX-License-Identifier: MIT */
/*
 * Ends the probe where the measuring threads take the machine away: a thread that ran
 * for more than 85 % of 2 s, a drain that wanted to run for 5 s and could not, or a probe that outlives its
 * own length, or the request to stop, by 30 s. First it asks (the stop flag), 2 s later it demotes the
 * threads to SCHED_OTHER, 2 s later it ends the process. Where the kernel takes it, the watchdog is
 * SCHED_DEADLINE, which is above every FIFO priority; else, as where it is pinned to CPUs that are not
 * measured, FIFO 99.
 */
#ifndef RTGAUGE_WATCHDOG_H
#define RTGAUGE_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* A thread that never sleeps gets less than all: real-time throttling takes 5 %, a hypervisor some more. */
#define WATCHDOG_HOG_PERCENT 85
#define WATCHDOG_HOG_TICKS 4

struct watched {
	pid_t tid;
	clockid_t cpu_clock;
	_Atomic bool *done; /* the thread has ended: its clock is not read any more */
};

struct watchdog {
	const struct watched *threads;
	unsigned int count;
	int hog_percent;	    /* 0: WATCHDOG_HOG_PERCENT; above 100: a thread may take all */
	int64_t limit_ns;	    /* from start to the latest end; INT64_MAX: none */
	_Atomic bool *stop;	    /* set to ask the probe to end */
	_Atomic uint64_t *progress; /* moves as long as the drain lives */
	clockid_t drain_clock;	    /* CPU time of the drain, which is the first thread of the process */
	_Atomic bool bitten;
	_Atomic bool ended; /* set by the probe: the watchdog goes */
	char why[160];
};

/* What a thread used and what there was, in the last ticks. */
struct hog_window {
	int64_t used_ns[WATCHDOG_HOG_TICKS], elapsed_ns[WATCHDOG_HOG_TICKS];
	unsigned int ticks; /* so far */
};

/* Called each tick with what the thread used of that tick. true: it used more than this share of the last
 * WATCHDOG_HOG_TICKS ticks, taken together: what a tick has less for throttling, the next has more. */
bool hog_window_full(struct hog_window *window, int64_t used_ns, int64_t elapsed_ns, int percent);

/* 0 or an errno. The struct must live until the process ends. The watchdog runs on the CPUs of the calling
 * thread. */
int watchdog_start(struct watchdog *dog);

#endif
