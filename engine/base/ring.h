/* SPDX-License-Identifier: MIT */
/*
 * Rings from one measuring thread to the thread that drains them. A struct ring holds numbers. A struct
 * slot_ring is for anything else: the user has an array, which is written and read in place. The two
 * indices have their own cache lines. The producer reads the consumer's index only if the ring seems full,
 * so a push is usually one store of the sample and one of the index.
 */
#ifndef RTGAUGE_RING_H
#define RTGAUGE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cache_line.h"

struct ring_indices {
	/* the producer's */
	_Alignas(CACHE_LINE) _Atomic size_t head;
	size_t tail_seen;
	/* the consumer's */
	_Alignas(CACHE_LINE) _Atomic size_t tail;
	size_t popped; /* in slots: one more than tail while the last popped slot is being read */
	/* constant */
	_Alignas(CACHE_LINE) size_t mask; /* the size, a power of two, minus one */
};

static inline void ring_indices_init(struct ring_indices *r, size_t size)
{
	atomic_init(&r->head, 0);
	atomic_init(&r->tail, 0);
	r->tail_seen = r->popped = 0;
	r->mask = size - 1;
}

/* Producer: finds the next index to write (*head & mask); returns false if the ring is full. */
static inline bool ring_indices_next(struct ring_indices *r, size_t *head)
{
	*head = atomic_load_explicit(&r->head, memory_order_relaxed);
	if (__builtin_expect(*head - r->tail_seen > r->mask, 0)) {
		r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
		if (*head - r->tail_seen > r->mask)
			return false;
	}
	return true;
}

/* Producer: passes the written entry to the consumer. */
static inline void ring_indices_publish(struct ring_indices *r, size_t head)
{
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

struct ring {
	struct ring_indices indices;
	int64_t *slots; /* constant */
};

/* slots: an array of size entries, size a power of two. */
static inline void ring_init(struct ring *ring, int64_t *slots, size_t size)
{
	ring_indices_init(&ring->indices, size);
	ring->slots = slots;
}

/* Producer: returns false if the ring is full and the value is lost. */
static inline bool ring_push(struct ring *ring, int64_t value)
{
	size_t head;

	if (!ring_indices_next(&ring->indices, &head))
		return false;
	ring->slots[head & ring->indices.mask] = value;
	ring_indices_publish(&ring->indices, head);
	return true;
}

/* Consumer: copies at most count values; returns how many were copied. */
static inline size_t ring_pop(struct ring *ring, int64_t *values, size_t count)
{
	struct ring_indices *r = &ring->indices;
	size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	size_t ready = atomic_load_explicit(&r->head, memory_order_acquire) - tail;

	if (ready < count)
		count = ready;
	for (size_t i = 0; i < count; i++)
		values[i] = ring->slots[(tail + i) & r->mask];
	atomic_store_explicit(&r->tail, tail + count, memory_order_release);
	return count;
}

struct slot_ring {
	struct ring_indices indices;
};

/* size: the length of the array, a power of two. */
static inline void slot_ring_init(struct slot_ring *s, size_t size)
{
	ring_indices_init(&s->indices, size);
}

/* Producer: finds the slot to write; returns false if all are taken. */
static inline bool slot_ring_next(struct slot_ring *s, size_t *slot)
{
	if (!ring_indices_next(&s->indices, slot))
		return false;
	*slot &= s->indices.mask;
	return true;
}

/* Producer: passes the written slot to the consumer. */
static inline void slot_ring_push(struct slot_ring *s)
{
	ring_indices_publish(&s->indices, atomic_load_explicit(&s->indices.head, memory_order_relaxed));
}

/* Consumer: finds the slot to read, which is valid until the next call; returns false if none is written. */
static inline bool slot_ring_pop(struct slot_ring *s, size_t *slot)
{
	struct ring_indices *r = &s->indices;

	atomic_store_explicit(&r->tail, r->popped, memory_order_release);
	if (r->popped == atomic_load_explicit(&r->head, memory_order_acquire))
		return false;
	*slot = r->popped++ & r->mask;
	return true;
}

#endif
