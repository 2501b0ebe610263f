// SPDX-License-Identifier: MIT
#include "ext/signal/engine/response/responses.h"

#include "base/clock.h"
#include "ext/signal/engine/response/response_reference.h"

#define NOTE_TRIES 20

static void feed(struct responses *r, const struct master *master, const struct stimulus *stimulus,
		 int64_t timeout_ns, struct json *j)
{
	if (stimulus->back_ns == MASTER_LOST)
		series_miss_timed(r->series, stimulus->sent_ns, timeout_ns, j);
	else
		series_feed_timed(r->series, stimulus->sent_ns, stimulus->back_ns - stimulus->sent_ns, j);
	due_feed_skipped(r->series, stimulus, master->due.interval_ns, j);
	if (r->reference)
		response_reference_add(r->reference, stimulus, j);
}

/* Finds the slave's note of its answer to this stimulus. The slave writes the note after the answer, so it
 * may not have come yet. Returns false if there is none. */
static bool find_answer(struct responses *r, const struct stimulus *stimulus, struct slave *slave)
{
	size_t slot;

	for (int tries = 0; r->held.woke_ns <= stimulus->sent_ns; tries++) {
		if (slot_ring_pop(&slave->ring, &slot)) {
			r->held = slave->slots[slot];
			continue;
		}
		if (tries == NOTE_TRIES)
			return false;
		clock_pause_ns(NS_PER_S / 1000);
	}
	return r->held.woke_ns < stimulus->back_ns;
}

static void take_apart(struct responses *r, const struct stimulus *stimulus, struct slave *slave,
		       struct json *j)
{
	if (stimulus->back_ns == MASTER_LOST)
		return;
	if (find_answer(r, stimulus, slave))
		parts_feed(r->parts, stimulus->sent_ns, r->held.woke_ns, j);
	else
		r->parts->unmatched++;
}

void responses_take_stimuli(struct responses *r, struct master *master, struct slave *slave,
			    int64_t timeout_ns, struct json *j)
{
	size_t slot;

	while (slot_ring_pop(&master->ring, &slot)) {
		feed(r, master, &master->slots[slot], timeout_ns, j);
		if (r->parts)
			take_apart(r, &master->slots[slot], slave, j);
	}
}

void responses_take_answers(struct responses *r, struct slave *slave, struct json *j)
{
	size_t slot;

	while (slot_ring_pop(&slave->ring, &slot)) {
		const struct answer *a = &slave->slots[slot];
		int64_t from_ns = a->edge_ns ? a->edge_ns : a->woke_ns;

		if (r->parts && r->held.answered_ns)
			parts_feed(r->parts, r->held.answered_ns, a->woke_ns, j);
		r->held = *a;
		series_feed_timed(r->series, from_ns, a->answered_ns - from_ns, j);
	}
}
