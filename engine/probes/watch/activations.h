/* SPDX-License-Identifier: MIT */
/* Derives a watched thread's activations from wake-ups and switches. The thread is released when it is
 * woken, and runs until it sleeps. */
#ifndef RTGAUGE_WATCH_ACTIVATIONS_H
#define RTGAUGE_WATCH_ACTIVATIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probes/watch/sched_events.h"

/*
 * An activation that is finished or, with done false, has begun to run. A thread is held while it is
 * stopped, or in an uninterruptible sleep as for a disk; its activation then continues. A kernel that does
 * not trace every switch may leave out when the activation began to run (begun false: start_ns is unknown,
 * and latency_bound_ns is the latest start), or when it was preempted (executed false: execution_ns is
 * unknown).
 */
struct watch_activation {
	bool done, begun, executed;
	int cpu; /* the CPU on which it began to run */
	int64_t release_ns, start_ns, end_ns, execution_ns,
		period_ns; /* period 0: there was no activation before */
	int64_t latency_bound_ns;
};

enum watch_state { WATCH_UNKNOWN, WATCH_ASLEEP, WATCH_WOKEN, WATCH_READY, WATCH_RUNNING, WATCH_HELD };

struct watch_track {
	pid_t tid;

	enum watch_state state;
	int cpu; /* the CPU on which it ran last */
	int64_t run_since_ns, last_release_ns;
	int64_t woken_ns; /* time that it ran on another CPU, as far as the kernel traced this; 0: none */
	bool known;	  /* whether the release of the unfinished activation is known */
	int64_t unended;  /* activations whose end the kernel did not trace */
	struct watch_activation now;
};

/* Takes a wake-up or a switch of the thread. Returns true if *activation began to run, or is finished.
 * *preempted: whether another thread took its CPU. */
bool watch_track_event(struct watch_track *track, const struct sched_event *event,
		       struct watch_activation *activation, bool *preempted);

/* Takes an event that shows that the thread runs, such as its system call. */
void watch_track_runs(struct watch_track *track, const struct sched_event *event);

/* Call if events were lost: drops the present activation. */
void watch_track_lost(struct watch_track *track);

#endif
