// SPDX-License-Identifier: MIT
#include "ext/signal/engine/response/slave.h"

#include <errno.h>

#include "base/clock.h"
#include "harness/harness.h"
#include "harness/peer_process.h"

#define ROOM 16384

struct slave *slave_new(struct path_end *end, bool noting)
{
	struct slave *s = peer_process_memory(sizeof(*s));

	if (!s)
		return NULL;
	s->end = end;
	s->noting = noting;
	if (!noting)
		return s;
	s->slots = peer_process_memory(ROOM * sizeof(*s->slots));
	if (!s->slots)
		return NULL;
	slot_ring_init(&s->ring, ROOM);
	return s;
}

static void note(struct slave *s, const struct edge *edge, int64_t woke_ns)
{
	size_t slot;

	if (!slot_ring_next(&s->ring, &slot)) {
		atomic_fetch_add(&s->not_kept, 1);
		return;
	}
	s->slots[slot] = (struct answer){edge->time_ns, woke_ns, clock_now_ns(CLOCK_MONOTONIC)};
	slot_ring_push(&s->ring);
}

int slave_join(void *arg)
{
	struct slave *s = arg;

	return path_join(s->end);
}

void slave_answer(void *arg)
{
	struct slave *s = arg;
	struct path_end *end = s->end;
	int64_t woke_ns = 0;
	struct edge edge;

	while (!atomic_load_explicit(&harness_shared.stop, memory_order_relaxed)) {
		int error = end->kind->receive(end, &edge);

		if (error == EINTR)
			continue;
		if (s->noting)
			woke_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (!error && edge.number == EDGE_OVER) {
			atomic_store(&s->over, true);
			continue;
		}
		if (!error)
			error = end->kind->send(end, edge.number);
		if (error) {
			atomic_store(&s->error, error);
			return;
		}
		if (s->noting)
			note(s, &edge, woke_ns);
		atomic_store_explicit(&s->answers,
				      atomic_load_explicit(&s->answers, memory_order_relaxed) + 1,
				      memory_order_relaxed);
		if (edge.count > 1)
			atomic_fetch_add(&s->double_edges, edge.count - 1);
	}
}
