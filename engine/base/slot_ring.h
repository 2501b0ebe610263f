/* SPDX-License-Identifier: MIT */
/*
 * A ring of samples that are more than a number: the ring holds indices of slots, of which there are twice as
 * many, so that the slot that is written is never one that waits. The slots are an array of the user's own.
 */
#ifndef RTGAUGE_SLOT_RING_H
#define RTGAUGE_SLOT_RING_H

#include "base/ring.h"

struct slot_ring {
	struct ring ring;
	size_t next, mask; /* the producer's: of slots */
};

/* indices: an array of size entries, size a power of two; the slots are twice as many. */
static inline void slot_ring_init(struct slot_ring *s, int64_t *indices, size_t size)
{
	ring_init(&s->ring, indices, size);
	s->next = 0;
	s->mask = 2 * size - 1;
}

/* Producer. The slot to write next. */
static inline size_t slot_ring_next(const struct slot_ring *s)
{
	return s->next & s->mask;
}

/* Producer. That slot is written. false: the ring is full and the slot is still the next one. */
static inline bool slot_ring_push(struct slot_ring *s)
{
	if (!ring_push(&s->ring, (int64_t)slot_ring_next(s)))
		return false;
	s->next++;
	return true;
}

/* Consumer. As ring_pop: slots that were written. */
static inline size_t slot_ring_pop(struct slot_ring *s, int64_t *slots, size_t count)
{
	return ring_pop(&s->ring, slots, count);
}

#endif
