/* SPDX-License-Identifier: MIT */
/* The task of the probe periodic: it toggles the line each half-period. */
#ifndef RTGAUGE_PERIODIC_TOGGLER_H
#define RTGAUGE_PERIODIC_TOGGLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slot_ring.h"
#include "harness/thread.h"
#include "signal/path.h"

#define TOGGLER_ROOM 32768

/* An edge: which release it was for, its number, from 1, and when it was out. */
struct toggle {
	int64_t release, edge, toggled_ns;
};

struct toggler {
	/* its own while it measures */
	_Alignas(CACHE_LINE) struct slot_ring ring;
	struct toggle *slots;
	int64_t release; /* the one that is waited for */
	int64_t expired; /* of the timer descriptor */
	int64_t edges;
	int error; /* an errno: the path failed */

	/* constant */
	struct path_end *end;
	bool by_timerfd, tells_over; /* at its end it says so to the other engine */
	int timer_fd;
	int64_t half_ns, start_ns, warm_up_count, total_count;
	struct harness_thread thread; /* what it does is set by toggler_make */
};

/* false: there is not the memory. */
bool toggler_make(struct toggler *t);

#endif
