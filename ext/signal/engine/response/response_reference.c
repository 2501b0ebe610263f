// SPDX-License-Identifier: MIT
#include "ext/signal/engine/response/response_reference.h"

#include "base/clock.h"
#include "base/memory.h"
#include "ext/signal/engine/path/wire.h"

#define WAITING 65536

bool response_reference_make(struct response_reference *r, int cpu)
{
	r->series = memory_get(RESPONSE_REFERENCE_SERIES * sizeof(*r->series));
	r->waiting = memory_get(WAITING * sizeof(*r->waiting));
	if (!r->series || !r->waiting)
		return false;
	r->series[WIRE_RESPONSE].metric = "response";
	r->series[WIRE_RESPONSE].labels[0] = (struct label){"role", "wire"};
	r->series[DIFFERENCE].metric = "difference";
	r->series[DIFFERENCE].labels[0] = (struct label){"role", "master"};
	for (int i = 0; i < RESPONSE_REFERENCE_SERIES; i++)
		r->series[i].cpu = cpu;
	r->series[DIFFERENCE].negatives = memory_get(sizeof(*r->series[DIFFERENCE].negatives));
	return r->series[DIFFERENCE].negatives != NULL;
}

static void compare(struct response_reference *r, const struct stimulus *stimulus, struct json *j)
{
	int64_t sent_ns = stimulus->sent_ns, back_ns = stimulus->back_ns;
	int64_t out_ns = wire_edge(WIRE_MASTER_OUT, sent_ns, back_ns);
	int64_t answer_ns = out_ns ? wire_edge(WIRE_SLAVE_OUT, out_ns, back_ns) : 0;

	if (!answer_ns) {
		r->unmatched++;
		return;
	}
	r->matched++;
	series_feed_timed(&r->series[WIRE_RESPONSE], sent_ns, answer_ns - out_ns, j);
	series_feed_timed(&r->series[DIFFERENCE], sent_ns, back_ns - sent_ns - (answer_ns - out_ns), j);
	if (r->slave) {
		int64_t entry_ns = kernel_slave_entry(r->slave, out_ns, answer_ns);

		if (entry_ns)
			series_feed_timed(&r->slave->steps[STEP_INTERRUPT], sent_ns, entry_ns - out_ns, j);
	}
}

/* Stimuli that are not measured count as in the master's own series. */
static void miss(struct response_reference *r, const struct stimulus *stimulus, struct json *j)
{
	if (stimulus->back_ns == MASTER_LOST)
		series_miss_timed(&r->series[WIRE_RESPONSE], stimulus->sent_ns, r->timeout_ns, j);
	due_feed_skipped(&r->series[WIRE_RESPONSE], stimulus, r->interval_ns, j);
}

static void take_oldest(struct response_reference *r, struct json *j)
{
	const struct stimulus *stimulus = &r->waiting[r->taken++ % WAITING];

	if (stimulus->back_ns != MASTER_LOST)
		compare(r, stimulus, j);
	miss(r, stimulus, j);
}

void response_reference_add(struct response_reference *r, const struct stimulus *stimulus, struct json *j)
{
	if (r->put - r->taken == WAITING)
		take_oldest(r, j);
	r->waiting[r->put++ % WAITING] = *stimulus;
}

void response_reference_take(struct response_reference *r, bool last, struct json *j)
{
	int64_t settled_ns = clock_now_ns(CLOCK_MONOTONIC) - WIRE_SETTLE_NS;

	wire_look();
	while (r->taken != r->put) {
		const struct stimulus *oldest = &r->waiting[r->taken % WAITING];
		int64_t over_ns =
			oldest->back_ns == MASTER_LOST ? oldest->sent_ns + r->timeout_ns : oldest->back_ns;

		if (!last && over_ns > settled_ns)
			break;
		take_oldest(r, j);
	}
}
