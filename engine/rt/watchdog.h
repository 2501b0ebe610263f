/* SPDX-License-Identifier: MIT */
/*
 * Ends the probe if the measuring threads take the machine: a thread used more than 85 % of 2 s, a drain
 * wanted to run for 5 s and could not, or a probe runs 30 s longer than its length or after the request to
 * stop. First it sets the stop flag, 2 s later it demotes the threads to SCHED_OTHER, 2 s later it ends
 * the process.
 *
 * * It also finds a measuring thread that wants to run for 3.5 s and cannot, because another thread holds
 * its CPU. When the probe must end, it moves such a thread to another CPU, so that the thread can end.
 *
 * * The watchdog is SCHED_DEADLINE if the kernel allows it, which is above every FIFO priority; else FIFO
 * 99. It stays on the CPU of the thread that starts it, and leaves it if that CPU is held.
 */
#ifndef RTGAUGE_WATCHDOG_H
#define RTGAUGE_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/cpuset.h"
#include "rt/cpu_holder.h"

/* Even a thread that never sleeps gets less than all the time: throttling takes 5 %, and a hypervisor
 * takes more. */
#define WATCHDOG_HOG_PERCENT 85
#define WATCHDOG_HOG_TICKS 4

struct watched {
	pid_t tid;
	clockid_t cpu_clock;
	_Atomic bool *done;	      /* the thread has ended, so its clock is no longer read */
	int cpu;		      /* the CPU to which it is pinned; -1: none */
	_Atomic int64_t *given_up_ns; /* set when the thread is moved off a held CPU: its releases count until
				       * then; INT64_MAX: to the end of the probe */
};

/* A thread that does not get its CPU. */
struct held_thread {
	int cpu;
	int64_t waited_ns;
	bool holder_known;
	struct thread_stat holder;
};

struct watchdog {
	const struct watched *threads;
	unsigned int count;
	int hog_percent;	    /* 0: WATCHDOG_HOG_PERCENT; above 100: a thread may take all */
	int64_t limit_ns;	    /* longest time from start to end; INT64_MAX: none */
	_Atomic bool *stop;	    /* set to ask the probe to end */
	_Atomic uint64_t *progress; /* changes as long as the drain lives */
	clockid_t drain_clock;	    /* CPU time of the drain, which is the first thread of the process */
	struct cpuset allowed;	    /* CPUs for the drain, and for a thread from a held CPU */
	struct held_thread held;    /* valid while held_found is set; the reader clears that flag */
	_Atomic bool held_found;
	_Atomic bool over; /* it has set `stop`, because a held thread cannot end by itself */
	_Atomic bool bitten;
	_Atomic bool ended; /* the probe sets this, and the watchdog ends */
	char why[160];
};

/* The CPU time used by the thread, and the time available, in the last ticks. */
struct hog_window {
	int64_t used_ns[WATCHDOG_HOG_TICKS], elapsed_ns[WATCHDOG_HOG_TICKS];
	unsigned int ticks; /* up to now */
};

/* Called each tick with the thread's CPU time in that tick. Returns true if the thread used more than this
 * share of the last WATCHDOG_HOG_TICKS ticks together, because the next tick makes up for throttling. */
bool hog_window_full(struct hog_window *window, int64_t used_ns, int64_t elapsed_ns, int percent);

/* Starts the watchdog on the CPUs of the calling thread. Returns 0 or an errno. The struct must live until
 * the process ends. */
int watchdog_start(struct watchdog *dog);

#endif
