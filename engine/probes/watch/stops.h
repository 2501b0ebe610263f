/* SPDX-License-Identifier: MIT */
/* The stops of a poller: times in which an interrupt, a softirq or another task has its CPU, from the first
 * one's beginning to the last one's end. Stops so close that the thread did nothing in between are one. */
#ifndef RTGAUGE_WATCH_STOPS_H
#define RTGAUGE_WATCH_STOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/watch/interrupt_events.h"

#define STOPS_JOIN_NS 3000 /* from the end of one stop to the beginning of the next, if they are one */

/* by: who had the CPU for the longest part of it. */
struct stop {
	int64_t from_ns, until_ns;
	char by[INTERRUPT_NAME_MAX];
};

struct stops {
	enum { STOPS_UNKNOWN, STOPS_RUNS, STOPS_OFF, STOPS_SLEEPS } state;
	int64_t since_ns; /* events are complete from here on; 0: stops are not followed */
	int64_t unknown;  /* stops whose beginning or end the kernel did not trace */
	bool active;	  /* `now` has begun */
	bool reschedules; /* the kernel switches to another task before the thread runs again */
	unsigned int depth;
	int64_t part_ns, longest_ns;
	char part[INTERRUPT_NAME_MAX];
	struct stop now;
};

/* Follows the stops from now on. Call again after lost events. */
void stops_begin(struct stops *stops, int64_t now_ns);

/* The thread is interrupted, or gives up its CPU (by NULL: for a sleep that it asked for). Return whether
 * this shows that the stop before has ended: *done. */
bool stops_interrupt(struct stops *stops, int64_t time_ns, const struct interrupt *interrupt,
		     struct stop *done);
bool stops_leave(struct stops *stops, int64_t time_ns, const char *by, struct stop *done);

/* The thread has the CPU again. */
void stops_return(struct stops *stops, int64_t time_ns);

/* Returns whether a stop has ended by now; at the end of the step (last), also one that has lasted so long.
 */
bool stops_settle(struct stops *stops, int64_t now_ns, bool last, struct stop *done);

#endif
