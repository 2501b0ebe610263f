// SPDX-License-Identifier: MIT
/* The ring, alone and between two threads; the second is most useful under the thread sanitizer. */
#include <pthread.h>
#include <sched.h>

#include "base/ring.h"
#include "tests/cm.h"

#define SIZE 8
#define VALUES 2000000

static struct ring ring;
static int64_t slots[64];

static void values_come_out_in_order(void **state)
{
	int64_t out[SIZE], next = 0, expected = 0;

	(void)state;
	ring_init(&ring, slots, SIZE);
	assert_int_equal(ring_pop(&ring, out, SIZE), 0);
	for (int round = 0; round < 100; round++) {
		size_t pushed = (size_t)(round % (SIZE + 1)), popped;

		for (size_t i = 0; i < pushed; i++)
			assert_true(ring_push(&ring, next++));
		popped = ring_pop(&ring, out, SIZE);
		assert_int_equal(popped, pushed);
		for (size_t i = 0; i < popped; i++)
			assert_int_equal(out[i], expected++);
	}
}

static void a_full_ring_refuses_and_keeps_what_it_has(void **state)
{
	int64_t out[SIZE + 1];

	(void)state;
	ring_init(&ring, slots, SIZE);
	for (int64_t i = 0; i < SIZE; i++)
		assert_true(ring_push(&ring, i));
	assert_false(ring_push(&ring, 100));
	assert_false(ring_push(&ring, 101));
	assert_int_equal(ring_pop(&ring, out, 3), 3);
	for (int64_t i = 0; i < 3; i++)
		assert_true(ring_push(&ring, SIZE + i));
	assert_false(ring_push(&ring, 102));
	assert_int_equal(ring_pop(&ring, out, SIZE + 1), SIZE);
	for (int64_t i = 0; i < SIZE; i++)
		assert_int_equal(out[i], 3 + i);
	assert_int_equal(ring_pop(&ring, out, 1), 0);
}

static void the_indices_may_wrap(void **state)
{
	int64_t out[SIZE];

	(void)state;
	ring_init(&ring, slots, SIZE);
	atomic_store(&ring.indices.head, SIZE_MAX - 3);
	atomic_store(&ring.indices.tail, SIZE_MAX - 3);
	ring.indices.tail_seen = SIZE_MAX - 3;
	for (int64_t i = 0; i < SIZE; i++)
		assert_true(ring_push(&ring, i));
	assert_false(ring_push(&ring, 100));
	assert_int_equal(ring_pop(&ring, out, SIZE), SIZE);
	for (int64_t i = 0; i < SIZE; i++)
		assert_int_equal(out[i], i);
}

/* Pushes 1, 2, 3, ...; refused values are lost. Returns how many were. */
static void *produce(void *arg)
{
	bool patient = *(const bool *)arg;
	int64_t lost = 0;

	for (int64_t value = 1; value <= VALUES; value++) {
		while (!ring_push(&ring, value)) {
			if (!patient) {
				lost++;
				break;
			}
			sched_yield();
		}
	}
	while (!ring_push(&ring, -lost - 1))
		sched_yield();
	return NULL;
}

static void consume(bool patient)
{
	int64_t out[16], last = 0, taken = 0, lost = -1;
	pthread_t producer;

	ring_init(&ring, slots, sizeof(slots) / sizeof(slots[0]));
	assert_int_equal(pthread_create(&producer, NULL, produce, &patient), 0);
	while (lost < 0) {
		size_t n = ring_pop(&ring, out, sizeof(out) / sizeof(out[0]));

		if (!n)
			sched_yield();
		for (size_t i = 0; i < n; i++) {
			if (out[i] < 0) {
				lost = -out[i] - 1;
				continue;
			}
			assert_true(out[i] > last);
			last = out[i];
			taken++;
		}
	}
	pthread_join(producer, NULL);
	assert_int_equal(taken + lost, VALUES);
	if (patient)
		assert_int_equal(lost, 0);
}

static void two_threads_lose_nothing_when_one_waits(void **state)
{
	(void)state;
	consume(true);
}

static void two_threads_count_what_is_lost(void **state)
{
	(void)state;
	consume(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_out_in_order),
		cmocka_unit_test(a_full_ring_refuses_and_keeps_what_it_has),
		cmocka_unit_test(the_indices_may_wrap),
		cmocka_unit_test(two_threads_lose_nothing_when_one_waits),
		cmocka_unit_test(two_threads_count_what_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
