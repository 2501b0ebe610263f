/* SPDX-License-Identifier: MIT */
/* The master of the probe response: it makes an edge, waits for the answer, and distinguishes answers from
 * noise. */
#ifndef RTGAUGE_RESPONSE_MASTER_H
#define RTGAUGE_RESPONSE_MASTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ring.h"
#include "harness/harness.h"
#include "probes/response/due.h"
#include "signal/path.h"

#define MASTER_LOST INT64_C(-1)

struct master {
	/* its own while it measures */
	_Alignas(CACHE_LINE) struct slot_ring ring;
	struct stimulus *slots;
	uint64_t random;  /* the seed at first */
	int64_t number;	  /* of the last stimulus; the first is 1 */
	int64_t answered; /* the last answered one */
	int64_t owed;	  /* lost ones whose late answers would have no number */
	bool measuring;
	bool nobody;			/* it ended because nobody ever answered */
	int error;			/* an errno: the path failed and ended the master */
	struct master_counts counts[2]; /* warm-up, measured */
	int64_t not_kept;

	/* shared with the drain, which looks rarely */
	_Atomic int64_t waiting_ns; /* the stimulus that waits for its answer; 0: none */
	_Atomic int64_t given_up_ns;

	/* constant */
	int64_t interval_min_ns, interval_max_ns; /* from an answer to the next stimulus */
	int64_t start_ns;
	struct due due; /* interval 0: intervals are drawn from the next two */
	struct path_end *end;
	bool tells_over;	      /* at its end it tells the other engine */
	struct harness_thread thread; /* master_make sets what it does */
};

/* Returns false if there is no memory. */
bool master_make(struct master *m);

/* The drain calls it repeatedly: an answer that takes too long is given up. */
void master_give_up(struct master *m, int64_t timeout_ns);

#endif
