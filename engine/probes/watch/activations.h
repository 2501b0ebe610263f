/* SPDX-License-Identifier: MIT */
/* What a thread that is watched did, from its wake-ups and switches: released when it is woken, running until
 * it goes to sleep. */
#ifndef RTGAUGE_WATCH_ACTIVATIONS_H
#define RTGAUGE_WATCH_ACTIVATIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probes/watch/sched_events.h"

/* One activation that is over, or, with done false, has begun to run. */
struct watch_activation {
	bool done;
	int cpu;						       /* on which it began to run */
	int64_t release_ns, start_ns, end_ns, execution_ns, period_ns; /* period 0: there was none before */
};

enum watch_state { WATCH_UNKNOWN, WATCH_ASLEEP, WATCH_WOKEN, WATCH_READY, WATCH_RUNNING };

struct watch_track {
	pid_t tid;

	enum watch_state state;
	int64_t run_since_ns, last_release_ns;
	bool known;	/* the release of the activation that goes on */
	int64_t untold; /* activations of which the kernel did not tell when they began to run */
	struct watch_activation now;
};

/* Takes an event of the thread. true: *activation began to run, or is over. *preempted: another thread took
 * its CPU. */
bool watch_track_event(struct watch_track *track, const struct sched_event *event,
		       struct watch_activation *activation, bool *preempted);

/* Events were lost: what goes on is not told. */
void watch_track_lost(struct watch_track *track);

#endif
