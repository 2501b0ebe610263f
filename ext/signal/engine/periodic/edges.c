// SPDX-License-Identifier: MIT
#include "ext/signal/engine/periodic/edges.h"
#include "base/memory.h"
#include "rt/runtime.h"

#define RELEASES 32768 /* an edge is seen before this many later edges are made */

bool edges_make(struct edges *e)
{
	e->series = memory_get(EDGES_SERIES * sizeof(*e->series));
	e->releases = memory_get(RELEASES * sizeof(*e->releases));
	return e->series && e->releases;
}

void edges_feed_toggle(struct edges *e, const struct toggle *toggle, struct json *j)
{
	int64_t release_ns = e->start_ns + toggle->release * e->half_ns;
	int64_t latency_ns = toggle->toggled_ns - release_ns;

	if (toggle->release > e->position)
		series_feed(&e->series[SELF_LATENCY], SAMPLE_LOST(toggle->release - e->position), j);
	series_feed(&e->series[SELF_LATENCY],
		    latency_ns < (RUNTIME_FIRES_EARLY ? SAMPLE_EARLIEST : 0) ? SAMPLE_IMPOSSIBLE : latency_ns,
		    j);
	if (e->last_edge && toggle->edge == e->last_edge + 1)
		series_feed_timed(&e->series[SELF_JITTER], release_ns,
				  toggle->toggled_ns - e->last_ns - e->half_ns, j);
	e->position = toggle->release + 1 + series_missed_after(latency_ns, e->half_ns);
	e->last_ns = toggle->toggled_ns;
	while (e->last_edge < toggle->edge - 1)
		e->releases[++e->last_edge % RELEASES] = 0;
	e->last_edge = toggle->edge;
	e->releases[e->last_edge % RELEASES] = release_ns;
	if (e->reference)
		edge_reference_made(e->reference,
				    &(struct referenced_edge){.number = toggle->edge,
							      .release_ns = release_ns,
							      .toggled_ns = toggle->toggled_ns});
}

/* The half-period is unknown for edges taken together, and after a lost edge. */
static void feed_sight(struct edges *e, const struct sight *sight, struct json *j)
{
	bool known =
		e->both && e->last_edge - sight->edges < RELEASES && e->releases[sight->edges % RELEASES];
	int64_t time_ns = known ? e->releases[sight->edges % RELEASES] : sight->seen_ns;
	int64_t between = e->seen ? sight->edges - e->last.edges : 1;

	if (known)
		series_feed_timed(&e->series[OTHER_LATENCY], time_ns, sight->seen_ns - time_ns, j);
	if (known && e->reference)
		edge_reference_seen(e->reference, sight->edges, sight->seen_ns);
	if (e->seen && between == 1)
		series_feed_timed(&e->series[OTHER_JITTER], time_ns,
				  sight->seen_ns - e->last.seen_ns - e->half_ns, j);
	e->doubled += sight->at_once - 1;
	if (between > (int64_t)sight->at_once)
		e->lost += between - sight->at_once;
	e->seen += sight->at_once;
	e->last = *sight;
}

void edges_take_toggles(struct edges *e, struct toggler *toggler, struct json *j)
{
	size_t slot;

	while (slot_ring_pop(&toggler->ring, &slot))
		edges_feed_toggle(e, &toggler->slots[slot], j);
}

void edges_take_sights(struct edges *e, struct observer *observer, struct json *j)
{
	size_t slot;

	for (;;) {
		if (!e->holding) {
			if (!slot_ring_pop(&observer->ring, &slot))
				return;
			e->held = observer->slots[slot];
			e->holding = true;
		}
		/* An edge may be seen before its maker has noted it. */
		if (e->both && e->held.edges > e->last_edge)
			return;
		feed_sight(e, &e->held, j);
		e->holding = false;
	}
}
