/* SPDX-License-Identifier: MIT */
/* Distinguishes why a stimulus that was due was not made: because the previous answer was missing, or
 * because the master itself was late. */
#ifndef RTGAUGE_RESPONSE_DUE_H
#define RTGAUGE_RESPONSE_DUE_H

#include <stdint.h>

#include "base/series.h"

/* The result of a stimulus. */
struct stimulus {
	int64_t sent_ns, back_ns;	   /* back_ns MASTER_LOST: no answer came */
	int64_t skipped, first_skipped_ns; /* stimuli at a fixed interval that became due while it waited */
};

struct master_counts {
	int64_t stimuli, answers, lost, early, doubled, late;
	int64_t skipped;	/* at a fixed interval: stimuli due while the previous answer was missing */
	int64_t not_made;	/* the same, but due before the master, itself late, could make one */
	int64_t late_by_max_ns; /* time from when a stimulus was due until it was made */
};

/* The times of a run with a fixed interval. Each stimulus belongs to the phase in which it was due. No
 * stimulus after the measured phase counts. */
struct due {
	int64_t interval_ns, measured_ns, end_ns;
};

/* Call after a stimulus is over. It was due before *next_ns; the stimuli due from then until over_ns were
 * skipped. Sets the sample's first_skipped_ns and skipped, counts the stimuli (warm-up, measured), and
 * advances *next_ns. */
void due_pass(const struct due *due, struct stimulus *stimulus, int64_t *next_ns, int64_t over_ns,
	      struct master_counts counts[2]);

/* Feeds the series with the stimuli that this one skipped, as missed. */
void due_feed_skipped(struct series *series, const struct stimulus *stimulus, int64_t interval_ns,
		      struct json *j);

/* The master comes at now_ns, when no more stimuli are made. The ones due since *next_ns were not made. */
void due_end(const struct due *due, int64_t *next_ns, int64_t now_ns, struct master_counts counts[2]);

#endif
