/* SPDX-License-Identifier: MIT */
/* The master of the probe response. It makes an edge, waits for the answer, and distinguishes answers from
 * noise. */
#ifndef RTGAUGE_RESPONSE_MASTER_H
#define RTGAUGE_RESPONSE_MASTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ring.h"
#include "ext/signal/engine/path/path.h"
#include "ext/signal/engine/response/due.h"
#include "harness/harness.h"

#define MASTER_LOST INT64_C(-1)

struct master {
	/* the master's own while it measures */
	_Alignas(CACHE_LINE) struct slot_ring ring;
	struct stimulus *slots;
	uint64_t random;  /* the seed at first */
	int64_t number;	  /* number of the last stimulus; the first is 1 */
	int64_t answered; /* number of the last answered stimulus */
	int64_t owed;	  /* lost stimuli whose late answers would have no number */
	bool measuring;
	bool nobody;			/* it ended because no answer ever came */
	int error;			/* an errno: the path failed, which ended the master */
	struct master_counts counts[2]; /* warm-up, measured */
	int64_t not_kept;

	/* shared with the drain, which seldom looks */
	_Atomic int64_t waiting_ns; /* the stimulus that is waiting for its answer; 0: none */
	_Atomic int64_t given_up_ns;

	/* constant */
	int64_t interval_min_ns, interval_max_ns; /* time from an answer to the next stimulus */
	int64_t start_ns;
	struct due due; /* interval 0: intervals are drawn between the next two */
	struct path_end *end;
	bool tells_over;	      /* whether it tells the other engine when it ends */
	struct harness_thread thread; /* master_make sets the thread's functions */
};

/* Returns false if there is no memory. */
bool master_make(struct master *m);

/* The drain calls this repeatedly, to give up an answer that takes too long. */
void master_give_up(struct master *m, int64_t timeout_ns);

#endif
