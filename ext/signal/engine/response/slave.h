/* SPDX-License-Identifier: MIT */
/* The slave of the probe response. It waits for an edge and answers it, as a thread of the engine or as a
 * second process. */
#ifndef RTGAUGE_RESPONSE_SLAVE_H
#define RTGAUGE_RESPONSE_SLAVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ring.h"
#include "ext/signal/engine/path/path.h"

/* One answer. All times are CLOCK_MONOTONIC. */
struct answer {
	int64_t edge_ns; /* the kernel's time stamp of the stimulus; 0: the path has no time stamps */
	int64_t woke_ns, answered_ns;
};

struct slave {
	_Alignas(CACHE_LINE) struct slot_ring ring;
	struct answer *slots;

	struct path_end *end;
	_Atomic int64_t answers, double_edges, not_kept;
	_Atomic int error; /* an errno: the path failed, which ended the slave */
	bool noting;	   /* whether answers are noted in the ring, which takes two clock readings each */
	_Atomic bool over; /* the master has said that it is done */
};

/* Makes it in memory that a peer shares. NULL: no memory is left. */
struct slave *slave_new(struct path_end *end, bool noting);

/* In a peer process, before the start: opens its end of the path. Returns 0 or an errno. arg: a struct
 * slave. */
int slave_join(void *arg);

/* Answers until harness_shared.stop is set or, in a peer process, until the process is ended. arg: a
   struct slave. */
void slave_answer(void *arg);

#endif
