/* SPDX-License-Identifier: MIT */
/* The master of the probe response: it makes an edge, waits for the answer, and tells answers from noise. */
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
	uint64_t random;  /* its seed before */
	int64_t number;	  /* of the last stimulus; the first is 1 */
	int64_t answered; /* the last that was answered */
	int64_t owed;	  /* lost ones whose late answers would have no number */
	bool measuring;
	bool nobody;			/* it ended because nobody ever answered */
	int error;			/* an errno: the path failed, and the master with it */
	struct master_counts counts[2]; /* warm-up, measured */
	int64_t not_kept;

	/* shared with the drain, which looks seldom */
	_Atomic int64_t waiting_ns; /* the stimulus that is waited for; 0: none is */
	_Atomic int64_t given_up_ns;

	/* constant */
	int64_t interval_min_ns, interval_max_ns; /* from an answer to the next stimulus */
	int64_t start_ns;
	struct due due; /* interval 0: intervals are drawn from the next */
	struct path_end *end;
	bool tells_over;	      /* at its end it says so to the other engine */
	struct harness_thread thread; /* what it does is set by master_make */
};

/* false: there is not the memory. */
bool master_make(struct master *m);

/* By the drain, again and again: an answer that is out for too long is given up. */
void master_give_up(struct master *m, int64_t timeout_ns);

#endif
