/* SPDX-License-Identifier: MIT */
/*
 * Measures what watching costs the program: the CPU time of its threads each time they run. Stretches of
 * the warm-up are alternately without and with events (without, with, with, without, ...).
 */
#ifndef RTGAUGE_WATCH_COST_H
#define RTGAUGE_WATCH_COST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/threads.h"
#include "base/clock.h"
#include "base/json.h"
#include "probes/watch/sched_events.h"

#define WATCH_COST_STRETCHES 16
#define WATCH_COST_NS (2 * NS_PER_S) /* the time that is added to the warm-up */

struct watch_cost {
	struct sched_events *events;
	int64_t begin_ns;
	pid_t tids[WATCH_THREADS_MAX];
	int count, begun; /* threads; stretches */
	bool over;
	struct {
		int64_t cpu_ns, slices;
		bool known;
	} stretches[WATCH_COST_STRETCHES];
};

/* The stretches begin at once, and end before begin_ns + WATCH_COST_NS. */
void watch_cost_begin(struct watch_cost *cost, struct sched_events *events, int64_t begin_ns,
		      const pid_t *tids, int count);

/* Switches events when it is time, and fits the buffers meanwhile. Returns true if this leaves a gap in the
 * recording. */
bool watch_cost_turn(struct watch_cost *cost, int64_t now_ns);

/* Writes a result `watch-cost` for each stretch. */
void watch_cost_write(const struct watch_cost *cost, struct json *j);

#endif
