/* SPDX-License-Identifier: MIT */
/*
 * A ring of samples from one measuring thread to the thread that drains it. The two indices have cache lines
 * of their own, and the producer looks at the consumer's only when the ring seems full: in the common case a
 * push is a store of the sample and a store of the index.
 */
#ifndef RTGAUGE_RING_H
#define RTGAUGE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rt/cache_line.h"

struct ring {
	/* the producer's */
	_Alignas(CACHE_LINE) _Atomic size_t head;
	size_t tail_seen;
	/* the consumer's */
	_Alignas(CACHE_LINE) _Atomic size_t tail;
	/* constant */
	_Alignas(CACHE_LINE) int64_t *slots;
	size_t mask;
};

/* slots: an array of size entries, size a power of two. */
static inline void ring_init(struct ring *ring, int64_t *slots, size_t size)
{
	atomic_init(&ring->head, 0);
	atomic_init(&ring->tail, 0);
	ring->tail_seen = 0;
	ring->slots = slots;
	ring->mask = size - 1;
}

/* Producer. false: the ring is full and the value is not in it. */
static inline bool ring_push(struct ring *ring, int64_t value)
{
	size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (__builtin_expect(head - ring->tail_seen > ring->mask, 0)) {
		ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
		if (head - ring->tail_seen > ring->mask)
			return false;
	}
	ring->slots[head & ring->mask] = value;
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
	return true;
}

/* Consumer. Copies at most count values, gives the number copied. */
static inline size_t ring_pop(struct ring *ring, int64_t *values, size_t count)
{
	size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	size_t ready = atomic_load_explicit(&ring->head, memory_order_acquire) - tail;

	if (ready < count)
		count = ready;
	for (size_t i = 0; i < count; i++)
		values[i] = ring->slots[(tail + i) & ring->mask];
	atomic_store_explicit(&ring->tail, tail + count, memory_order_release);
	return count;
}

#endif
