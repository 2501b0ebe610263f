/* SPDX-License-Identifier: MIT */
/* The measuring thread of `wakeup`: what it is told, what it shares with the others, and the measured path.
 */
#ifndef RTGAUGE_WAKEUP_THREAD_H
#define RTGAUGE_WAKEUP_THREAD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/cpuset.h"
#include "base/ring.h"
#include "base/series.h"
#include "rt/usage.h"

enum timer { TIMER_NANOSLEEP, TIMER_TIMERFD };
enum phase { PHASE_RANDOM, PHASE_FIXED };

/* The options of `wakeup`. Constant once the threads are started. */
struct wakeup_options {
	struct cpuset cpus;
	int64_t interval_ns, priority, duration_ns, count, warm_up_ns, stop_at_ns, dma_latency_us;
	int policy, timer, phase, memory_lock;
	const char *samples_dir;
	bool go;
};

extern struct wakeup_options wakeup_wanted;

/* What all threads share. */
struct wakeup_shared {
	_Alignas(CACHE_LINE) _Atomic bool stop; /* alone: every measuring thread reads it each time */
	_Alignas(CACHE_LINE) _Atomic bool over_threshold;
	sem_t gate; /* one post lets one thread go; start_ns is then set */
};

extern struct wakeup_shared wakeup_shared;

/* A measuring thread. The first part is its own while it measures; the rest is read by others before and
 * after. */
struct task {
	struct ring ring;

	_Alignas(CACHE_LINE) int64_t position; /* activations that are over, missed ones too */
	int64_t pending_lost;
	uint64_t limit_ns; /* a latency that reaches it is looked at: missed activations, the threshold, what
			      cannot be */

	int cpu, timer_fd, schedstat, error;
	int64_t start_ns, warm_up_count, total_count;
	uint64_t usual_limit_ns;
	struct usage before, after;
	pthread_t thread;
	pid_t tid;
	clockid_t cpu_clock;
	_Atomic bool ready, done;
	bool usage_known, moved;
	struct series *series;
};

/* What the thread runs; arg is its struct task. It waits at the gate, and is done when `done` says so. */
void *wakeup_thread(void *arg);

#endif
