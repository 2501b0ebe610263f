/* SPDX-License-Identifier: MIT */
/* The two tasks of the probe periodic. One toggles a line each half-period. The other, a thread of the
 * engine or a second process, notes when it sees each edge. */
#ifndef RTGAUGE_PERIODIC_TASKS_H
#define RTGAUGE_PERIODIC_TASKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ring.h"
#include "ext/signal/engine/path/path.h"
#include "harness/harness.h"

struct sight {
	int64_t seen_ns;      /* the kernel's time stamp, or when the observer woke */
	int64_t edges;	      /* edges seen up to and including this one */
	unsigned int at_once; /* edges that were taken together; this is the last one */
};

/* The task that watches. */
struct observer {
	_Alignas(CACHE_LINE) struct slot_ring ring;
	struct sight *slots;
	int64_t edges;

	struct path_end *end;
	_Atomic int64_t not_kept;
	_Atomic int error; /* an errno: the path failed, which ended the observer */
	_Atomic bool over; /* the master has said that it is done */
};

/* Makes it in memory that a peer shares. NULL: no memory is left. */
struct observer *observer_new(struct path_end *end);

/* In a peer process, before the start: opens its end of the path. Returns 0 or an errno. arg: a struct
 * observer. */
int observer_join(void *arg);

/* Watches until harness_shared.stop is set or, in a peer process, until the process is ended. arg: a
   struct observer. */
void observer_watch(void *arg);

#define TOGGLER_ROOM 32768

/* An edge: its release, its number from 1, and when it was made. */
struct toggle {
	int64_t release, edge, toggled_ns;
};

/* The task that toggles. */
struct toggler {
	/* the task's own while it measures */
	_Alignas(CACHE_LINE) struct slot_ring ring;
	struct toggle *slots;
	int64_t release; /* the release for which it waits */
	int64_t expired; /* of the timer descriptor */
	int64_t edges;
	int error; /* an errno: the path failed, which ended the task */

	/* constant */
	struct path_end *end;
	bool by_timerfd, tells_over; /* whether it tells the other engine when it ends */
	int timer_fd;
	int64_t half_ns, start_ns, warm_up_count, total_count;
	struct harness_thread thread; /* toggler_make sets the thread's functions */
};

/* Returns false if there is no memory. */
bool toggler_make(struct toggler *t);

#endif
