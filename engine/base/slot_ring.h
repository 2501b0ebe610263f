/* SPDX-License-Identifier: MIT */
/*
 * A ring for samples that are more than a number: as base/ring.h, but they are written and read where they
 * lie, in an array of the user's own; it says which slot is next.
 */
#ifndef RTGAUGE_SLOT_RING_H
#define RTGAUGE_SLOT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "rt/cache_line.h"

struct slot_ring {
	/* the producer's */
	_Alignas(CACHE_LINE) _Atomic size_t head;
	size_t tail_seen;
	/* the consumer's */
	_Alignas(CACHE_LINE) _Atomic size_t tail;
	size_t popped; /* one more than tail while the last that was popped is read */
	/* constant */
	_Alignas(CACHE_LINE) size_t size;
};

/* size: of the array, a power of two. */
static inline void slot_ring_init(struct slot_ring *s, size_t size)
{
	atomic_init(&s->head, 0);
	atomic_init(&s->tail, 0);
	s->tail_seen = s->popped = 0;
	s->size = size;
}

/* Producer. Gives the slot to write; false: all are taken. */
static inline bool slot_ring_next(struct slot_ring *s, size_t *slot)
{
	size_t head = atomic_load_explicit(&s->head, memory_order_relaxed);

	if (__builtin_expect(head - s->tail_seen >= s->size, 0)) {
		s->tail_seen = atomic_load_explicit(&s->tail, memory_order_acquire);
		if (head - s->tail_seen >= s->size)
			return false;
	}
	*slot = head & (s->size - 1);
	return true;
}

/* Producer. That slot is written: the consumer may have it. */
static inline void slot_ring_push(struct slot_ring *s)
{
	size_t head = atomic_load_explicit(&s->head, memory_order_relaxed);

	atomic_store_explicit(&s->head, head + 1, memory_order_release);
}

/* Consumer. Gives the slot that is to be read, until the next call; false: none is written. */
static inline bool slot_ring_pop(struct slot_ring *s, size_t *slot)
{
	atomic_store_explicit(&s->tail, s->popped, memory_order_release);
	if (s->popped == atomic_load_explicit(&s->head, memory_order_acquire))
		return false;
	*slot = s->popped++ & (s->size - 1);
	return true;
}

#endif
