/* SPDX-License-Identifier: MIT */
/* The two tasks of the probe periodic: one toggles a line each half-period; the other, a thread of the
 * engine or a second process, notes when it sees each edge. */
#ifndef RTGAUGE_PERIODIC_TASKS_H
#define RTGAUGE_PERIODIC_TASKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ring.h"
#include "harness/harness.h"
#include "signal/path.h"

struct sight {
	int64_t seen_ns;      /* the kernel's time stamp, or when the observer woke */
	int64_t edges;	      /* seen so far, with this one */
	unsigned int at_once; /* edges that were taken together; this is the last of them */
};

/* The task that watches. */
struct observer {
	_Alignas(CACHE_LINE) struct slot_ring ring;
	struct sight *slots;
	int64_t edges;

	struct path_end *end;
	_Atomic int64_t not_kept;
	_Atomic int error; /* an errno: the path failed and ended the observer */
	_Atomic bool over; /* the master said that it is done */
};

/* In memory that a peer shares. NULL: none is left. */
struct observer *observer_new(struct path_end *end);

/* In a peer process, before the start: opens its end of the path. Returns 0 or an errno. arg: a struct
 * observer. */
int observer_join(void *arg);

/* Watches until harness_shared.stop or, in a peer process, until it is ended. arg: a struct observer. */
void observer_watch(void *arg);

#define TOGGLER_ROOM 32768

/* An edge: its release, its number from 1, and when it was out. */
struct toggle {
	int64_t release, edge, toggled_ns;
};

/* The task that toggles. */
struct toggler {
	/* its own while it measures */
	_Alignas(CACHE_LINE) struct slot_ring ring;
	struct toggle *slots;
	int64_t release; /* the release that it waits for */
	int64_t expired; /* of the timer descriptor */
	int64_t edges;
	int error; /* an errno: the path failed */

	/* constant */
	struct path_end *end;
	bool by_timerfd, tells_over; /* at its end it tells the other engine */
	int timer_fd;
	int64_t half_ns, start_ns, warm_up_count, total_count;
	struct harness_thread thread; /* toggler_make sets what it does */
};

/* Returns false if there is no memory. */
bool toggler_make(struct toggler *t);

#endif
