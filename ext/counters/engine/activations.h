/* SPDX-License-Identifier: MIT */
/*
 * The counters of a thread's activations, from perf's samples at its switches (perf_event_open(2)). Each
 * sample has the counters' values until then. They count only while the thread runs, so an activation has
 * what was counted between two switches at which the thread went to sleep.
 */
#ifndef RTGAUGE_ACTIVATIONS_H
#define RTGAUGE_ACTIVATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTERS_MAX 8 /* the first one counts the switches */

struct activation {
	int64_t end_ns;
	int64_t values[COUNTERS_MAX]; /* the first: how often it was switched out */
	bool whole;		      /* every counter had its register all the time */
};

struct activations {
	unsigned int counters;
	size_t state_offset, state_size; /* of prev_state in the record of sched_switch */
	int64_t lost;
	bool has_base; /* the values at the end of the previous activation are known */
	int64_t base[COUNTERS_MAX], enabled, running;
};

/*
 * Takes the next record of the ring (struct perf_event_header and its data, `len` bytes). Returns whether
 * an activation ended. A record that is damaged, or reports lost ones, makes the next activation unknown.
 */
bool activations_take(struct activations *all, const unsigned char *record, size_t len,
		      struct activation *ended);

#endif
