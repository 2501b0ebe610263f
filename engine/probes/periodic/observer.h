/* SPDX-License-Identifier: MIT */
/* The other end of a line that the probe periodic toggles: when it sees each edge. A thread of the engine, or
 * a process beside it. */
#ifndef RTGAUGE_PERIODIC_OBSERVER_H
#define RTGAUGE_PERIODIC_OBSERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slot_ring.h"
#include "signal/path.h"

struct sight {
	int64_t seen_ns;      /* the kernel's time stamp, or when the observer woke */
	int64_t edges;	      /* seen so far, this one included */
	unsigned int at_once; /* edges that were taken together; this is the last of them */
};

struct observer {
	_Alignas(CACHE_LINE) struct slot_ring ring;
	struct sight *slots;
	int64_t edges;

	struct path_end *end;
	_Atomic int64_t not_kept;
	_Atomic int error; /* an errno: the path failed, and the observer with it */
	_Atomic bool over; /* the master said so */
};

/* In memory that a peer shares. NULL: there is none left. */
struct observer *observer_new(struct path_end *end);

/* Watches until harness_shared.stop, or, as a peer, until it is ended. arg: a struct observer. */
void observer_watch(void *arg);

#endif
