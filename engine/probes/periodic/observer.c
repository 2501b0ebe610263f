// SPDX-License-Identifier: MIT
#include "probes/periodic/observer.h"

#include <errno.h>

#include "harness/peer_process.h"
#include "harness/thread.h"
#include "rt/clock.h"

#define ROOM 16384

struct observer *observer_new(struct path_end *end)
{
	struct observer *o = peer_process_memory(sizeof(*o));

	if (!o)
		return NULL;
	o->slots = peer_process_memory(ROOM * sizeof(*o->slots));
	if (!o->slots)
		return NULL;
	slot_ring_init(&o->ring, ROOM);
	o->end = end;
	return o;
}

/* The measured path: wait for an edge, read the clock, store. */
void observer_watch(void *arg)
{
	struct observer *o = arg;
	struct path_end *end = o->end;
	struct edge edge;

	while (!atomic_load_explicit(&harness_shared.stop, memory_order_relaxed)) {
		int error = end->kind->receive(end, &edge);
		int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
		size_t slot;

		if (error == EINTR)
			continue;
		if (error) {
			atomic_store(&o->error, error);
			return;
		}
		if (edge.number == EDGE_OVER) {
			atomic_store(&o->over, true);
			continue;
		}
		o->edges = edge.number == EDGE_UNNUMBERED ? o->edges + edge.count : edge.number;
		if (!slot_ring_next(&o->ring, &slot)) {
			atomic_fetch_add(&o->not_kept, 1);
			continue;
		}
		o->slots[slot] = (struct sight){edge.time_ns ? edge.time_ns : now_ns, o->edges, edge.count};
		slot_ring_push(&o->ring);
	}
}
