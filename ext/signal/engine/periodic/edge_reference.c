// SPDX-License-Identifier: MIT
#include "ext/signal/engine/periodic/edge_reference.h"

#include "base/clock.h"
#include "base/memory.h"
#include "ext/signal/engine/path/wire.h"

#define WAITING 65536

bool edge_reference_make(struct edge_reference *r)
{
	r->series = memory_get(EDGE_REFERENCE_SERIES * sizeof(*r->series));
	r->waiting = memory_get(WAITING * sizeof(*r->waiting));
	r->first = r->after = 1;
	return r->series && r->waiting;
}

static void compare(struct edge_reference *r, const struct referenced_edge *edge, struct json *j)
{
	int64_t out_ns = wire_edge(WIRE_MASTER_OUT, r->last_toggled_ns, edge->toggled_ns);

	r->last_toggled_ns = edge->toggled_ns;
	if (!out_ns) {
		r->unmatched++;
		return;
	}
	r->matched++;
	series_feed_timed(&r->series[WIRE_LATENCY], edge->release_ns, out_ns - edge->release_ns, j);
	if (r->last_number && edge->number == r->last_number + 1)
		series_feed_timed(&r->series[WIRE_JITTER], edge->release_ns,
				  out_ns - r->last_out_ns - r->half_ns, j);
	series_feed_timed(&r->series[SELF_DIFFERENCE], edge->release_ns, edge->toggled_ns - out_ns, j);
	if (edge->seen_ns)
		series_feed_timed(&r->series[OTHER_DIFFERENCE], edge->release_ns, edge->seen_ns - out_ns, j);
	r->last_number = edge->number;
	r->last_out_ns = out_ns;
}

static void take_oldest(struct edge_reference *r, struct json *j)
{
	const struct referenced_edge *edge = &r->waiting[r->first % WAITING];

	if (edge->number == r->first)
		compare(r, edge, j);
	r->first++;
}

void edge_reference_made(struct edge_reference *r, const struct referenced_edge *edge)
{
	r->waiting[edge->number % WAITING] = *edge;
	r->after = edge->number + 1;
}

void edge_reference_seen(struct edge_reference *r, int64_t number, int64_t seen_ns)
{
	if (number >= r->first && r->waiting[number % WAITING].number == number)
		r->waiting[number % WAITING].seen_ns = seen_ns;
}

void edge_reference_take(struct edge_reference *r, bool last, struct json *j)
{
	int64_t settled_ns = clock_now_ns(CLOCK_MONOTONIC) - WIRE_SETTLE_NS;

	wire_look();
	while (r->first < r->after) {
		const struct referenced_edge *edge = &r->waiting[r->first % WAITING];

		if (!last && edge->number == r->first && edge->toggled_ns > settled_ns)
			break;
		take_oldest(r, j);
	}
}
