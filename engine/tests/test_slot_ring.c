// SPDX-License-Identifier: MIT
/* The ring of slots, alone and between two threads; the second is most useful under the thread sanitizer. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "base/ring.h"
#include "tests/cm.h"

#define SIZE 8
#define SAMPLES 500000

struct pair {
	int64_t first, second; /* the second is the first's double */
};

static struct slot_ring ring;
static struct pair slots[SIZE];

static bool put(int64_t value)
{
	size_t slot;

	if (!slot_ring_next(&ring, &slot))
		return false;
	slots[slot] = (struct pair){value, 2 * value};
	slot_ring_push(&ring);
	return true;
}

static void take(int64_t value)
{
	size_t slot;

	assert_true(slot_ring_pop(&ring, &slot));
	assert_int_equal(slots[slot].first, value);
	assert_int_equal(slots[slot].second, 2 * value);
}

static void samples_come_out_in_order(void **state)
{
	int64_t next = 0, expected = 0;
	size_t slot;

	(void)state;
	slot_ring_init(&ring, SIZE);
	assert_false(slot_ring_pop(&ring, &slot));
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < round % (SIZE + 1); i++)
			assert_true(put(next++));
		while (expected < next)
			take(expected++);
		assert_false(slot_ring_pop(&ring, &slot));
	}
}

static void one_that_is_read_is_not_written(void **state)
{
	size_t slot;

	(void)state;
	slot_ring_init(&ring, SIZE);
	for (int64_t i = 0; i < SIZE; i++)
		assert_true(put(i));
	assert_false(put(100));
	take(0);
	assert_false(put(101)); /* its slot may still be read */
	take(1);
	assert_true(put(SIZE));
	assert_false(put(102));
	for (int64_t i = 2; i <= SIZE; i++)
		take(i);
	assert_false(slot_ring_pop(&ring, &slot));
	for (int64_t i = 0; i < SIZE; i++)
		assert_true(put(i));
}

static void a_slot_that_was_not_pushed_is_the_next_one_again(void **state)
{
	size_t first, second;

	(void)state;
	slot_ring_init(&ring, SIZE);
	assert_true(slot_ring_next(&ring, &first));
	assert_true(slot_ring_next(&ring, &second));
	assert_int_equal(first, second);
	assert_false(slot_ring_pop(&ring, &second));
}

static void the_counts_may_wrap(void **state)
{
	(void)state;
	slot_ring_init(&ring, SIZE);
	atomic_store(&ring.indices.head, SIZE_MAX - 3);
	atomic_store(&ring.indices.tail, SIZE_MAX - 3);
	ring.indices.tail_seen = ring.indices.popped = SIZE_MAX - 3;
	for (int64_t i = 0; i < SIZE; i++)
		assert_true(put(i));
	assert_false(put(100));
	for (int64_t i = 0; i < SIZE; i++)
		take(i);
}

static void *produce(void *arg)
{
	(void)arg;
	for (int64_t value = 1; value <= SAMPLES; value++) {
		while (!put(value))
			sched_yield();
	}
	return NULL;
}

static void two_threads_see_whole_samples(void **state)
{
	pthread_t producer;
	size_t slot;

	(void)state;
	slot_ring_init(&ring, SIZE);
	assert_int_equal(pthread_create(&producer, NULL, produce, NULL), 0);
	for (int64_t expected = 1; expected <= SAMPLES;) {
		if (!slot_ring_pop(&ring, &slot)) {
			sched_yield();
			continue;
		}
		assert_int_equal(slots[slot].first, expected);
		assert_int_equal(slots[slot].second, 2 * expected);
		expected++;
	}
	pthread_join(producer, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_come_out_in_order),
		cmocka_unit_test(one_that_is_read_is_not_written),
		cmocka_unit_test(a_slot_that_was_not_pushed_is_the_next_one_again),
		cmocka_unit_test(the_counts_may_wrap),
		cmocka_unit_test(two_threads_see_whole_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
