/* SPDX-License-Identifier: MIT */
/* Distinguishes stimuli that became due but were not made: because the previous answer was missing, or
 * because the master itself was late. */
#ifndef RTGAUGE_RESPONSE_DUE_H
#define RTGAUGE_RESPONSE_DUE_H

#include <stdint.h>

#include "base/series.h"

/* The result of a stimulus. */
struct stimulus {
	int64_t sent_ns, back_ns;	   /* back_ns MASTER_LOST: no answer came */
	int64_t skipped, first_skipped_ns; /* stimuli of a fixed interval that were due while it waited */
};

struct master_counts {
	int64_t stimuli, answers, lost, early, doubled, late;
	int64_t skipped;	/* of a fixed interval: due while the previous answer was missing */
	int64_t not_made;	/* likewise: due before the master, itself late, came to make one */
	int64_t late_by_max_ns; /* from when a stimulus was due until it was made */
};

/* Times of a run with a fixed interval. Each stimulus belongs to the phase in which it was due; none counts
 * after the measured phase. */
struct due {
	int64_t interval_ns, measured_ns, end_ns;
};

/* After the stimulus that was due before *next_ns: takes those due from *next_ns on until over_ns, when it
 * was over. Sets its first_skipped_ns and skipped, counts (warm-up, measured), and advances *next_ns. */
void due_pass(const struct due *due, struct stimulus *stimulus, int64_t *next_ns, int64_t over_ns,
	      struct master_counts counts[2]);

/* Feeds the series with the skipped ones of this stimulus as missed. */
void due_feed_skipped(struct series *series, const struct stimulus *stimulus, int64_t interval_ns,
		      struct json *j);

/* The master comes at now_ns, when no more are made: those due since *next_ns were not made. */
void due_end(const struct due *due, int64_t *next_ns, int64_t now_ns, struct master_counts counts[2]);

#endif
