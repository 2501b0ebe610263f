/* SPDX-License-Identifier: MIT */
/* What a thread that is watched did, from its wake-ups and switches: released when it is woken, running until
 * it goes to sleep. */
#ifndef RTGAUGE_WATCH_ACTIVATIONS_H
#define RTGAUGE_WATCH_ACTIVATIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probes/watch/sched_events.h"

/*
 * One activation that is over, or, with done false, has begun to run. A thread that is stopped, or sleeps
 * uninterruptibly as for a disk, is held: its activation goes on. Kernels that do not trace every switch
 * may leave out when it began to run (begun false: start_ns is not known, and latency_bound_ns is when it ran
 * at the latest) or when it was preempted (executed false: execution_ns is not known).
 */
struct watch_activation {
	bool done, begun, executed;
	int cpu;						       /* on which it began to run */
	int64_t release_ns, start_ns, end_ns, execution_ns, period_ns; /* period 0: there was none before */
	int64_t latency_bound_ns;
};

enum watch_state { WATCH_UNKNOWN, WATCH_ASLEEP, WATCH_WOKEN, WATCH_READY, WATCH_RUNNING, WATCH_HELD };

struct watch_track {
	pid_t tid;

	enum watch_state state;
	int cpu; /* on which it ran last */
	int64_t run_since_ns, last_release_ns;
	int64_t woken_ns; /* by another CPU while it ran, as far as the kernel traced it; 0: it was not */
	bool known;	  /* the release of the activation that goes on */
	int64_t unended;  /* activations of which the kernel did not trace when they ended */
	struct watch_activation now;
};

/* Takes a wake-up or a switch of the thread. true: *activation began to run, or is over. *preempted: another
 * thread took its CPU. */
bool watch_track_event(struct watch_track *track, const struct sched_event *event,
		       struct watch_activation *activation, bool *preempted);

/* Takes an event that shows that the thread runs, such as its system call. */
void watch_track_runs(struct watch_track *track, const struct sched_event *event);

/* Events were lost: what goes on is not told. */
void watch_track_lost(struct watch_track *track);

#endif
