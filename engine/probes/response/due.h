/* SPDX-License-Identifier: MIT */
/* The stimuli that became due and were not made, told apart: while the answer before was missing, or because
 * the master itself was late. */
#ifndef RTGAUGE_RESPONSE_DUE_H
#define RTGAUGE_RESPONSE_DUE_H

#include <stdint.h>

#include "base/series.h"

/* What a stimulus leaves. */
struct stimulus {
	int64_t sent_ns, back_ns;	   /* back_ns MASTER_LOST: no answer came */
	int64_t skipped, first_skipped_ns; /* those of a fixed interval that were due while it was out */
};

struct master_counts {
	int64_t stimuli, answers, lost, early, doubled, late;
	int64_t skipped;	/* of a fixed interval: due while the answer before was missing */
	int64_t not_made;	/* the same: due before the master, which was late itself, came to make one */
	int64_t late_by_max_ns; /* from when a stimulus was due to when it was made */
};

/* Times of a run with a fixed interval. Each stimulus is of the phase that it was due in; after the measured
 * one none counts. */
struct due {
	int64_t interval_ns, measured_ns, end_ns;
};

/* After the stimulus that was due before *next_ns: those due from *next_ns on until over_ns, when it was
 * over. Sets its first_skipped_ns and skipped, counts (warm-up, measured), and moves *next_ns on. */
void due_pass(const struct due *due, struct stimulus *stimulus, int64_t *next_ns, int64_t over_ns,
	      struct master_counts counts[2]);

/* Feeds the series with those that were skipped while this stimulus was not over: missed. */
void due_feed_skipped(struct series *series, const struct stimulus *stimulus, int64_t interval_ns,
		      struct json *j);

/* The master comes at now_ns, where none is made any more: those due since *next_ns were not made. */
void due_end(const struct due *due, int64_t *next_ns, int64_t now_ns, struct master_counts counts[2]);

#endif
