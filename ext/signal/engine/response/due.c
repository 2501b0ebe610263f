// SPDX-License-Identifier: MIT
#include "ext/signal/engine/response/due.h"

/* Returns how many stimuli are due at or after from_ns and before this time. */
static int64_t count_before(const struct due *due, int64_t from_ns, int64_t time_ns)
{
	return time_ns > from_ns ? (time_ns - from_ns - 1) / due->interval_ns + 1 : 0;
}

/* Skips the stimuli from *next_ns on that are due before this time; returns their number. */
static int64_t take_until(const struct due *due, int64_t *next_ns, int64_t time_ns, int64_t *in_warm_up,
			  int64_t *in_measured)
{
	int64_t taken = count_before(due, *next_ns, time_ns);
	int64_t warm_up =
		count_before(due, *next_ns, time_ns < due->measured_ns ? time_ns : due->measured_ns);
	int64_t by_end = count_before(due, *next_ns, time_ns < due->end_ns ? time_ns : due->end_ns);

	*in_warm_up += warm_up;
	*in_measured += by_end - warm_up;
	*next_ns += taken * due->interval_ns;
	return taken;
}

void due_pass(const struct due *due, struct stimulus *stimulus, int64_t *next_ns, int64_t over_ns,
	      struct master_counts counts[2])
{
	take_until(due, next_ns, stimulus->sent_ns, &counts[0].not_made, &counts[1].not_made);
	stimulus->first_skipped_ns = *next_ns;
	stimulus->skipped = take_until(due, next_ns, over_ns, &counts[0].skipped, &counts[1].skipped);
}

void due_end(const struct due *due, int64_t *next_ns, int64_t now_ns, struct master_counts counts[2])
{
	take_until(due, next_ns, now_ns, &counts[0].not_made, &counts[1].not_made);
}

void due_feed_skipped(struct series *series, const struct stimulus *stimulus, int64_t interval_ns,
		      struct json *j)
{
	int64_t over_ns = stimulus->first_skipped_ns + stimulus->skipped * interval_ns;

	for (int64_t i = 0; i < stimulus->skipped; i++) {
		int64_t due_ns = stimulus->first_skipped_ns + i * interval_ns;

		series_miss_timed(series, due_ns, over_ns - due_ns, j);
	}
}
