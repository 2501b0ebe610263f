// SPDX-License-Identifier: MIT
/* The newest pages of a ring. A pipe that keeps packets apart stands for the ring. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/cm.h"
#include "trace/page_store.h"

#define PAGE 256
#define DATA 16
#define PAGES 64 /* as many whole ones a store holds, if the ring has none */

static int ends[2];

static int set_up(void **state)
{
	(void)state;
	return pipe2(ends, O_DIRECT | O_NONBLOCK | O_CLOEXEC);
}

static int tear_down(void **state)
{
	(void)state;
	return close(ends[0]) || close(ends[1]);
}

/* Writes a page with so many records of 16 bytes, 1 ns apart, and reads it into the store. */
static void pass(struct page_store *store, int64_t time_ns, unsigned int records, uint32_t flags)
{
	unsigned char page[PAGE] = {0};
	uint32_t commit = records * 16 | flags, head = 3 | 1U << 5;
	struct trace_page read;

	memcpy(page, &time_ns, sizeof(time_ns));
	memcpy(page + 8, &commit, sizeof(commit));
	for (unsigned int i = 0; i < records; i++)
		memcpy(page + DATA + (size_t)i * 16, &head, sizeof(head));
	assert_int_equal(write(ends[1], page, sizeof(page)), sizeof(page));
	assert_int_equal(page_store_read(store, ends[0], &read), records > 0);
}

static unsigned int choose(const struct page_store *store, int64_t from_ns, int64_t to_ns,
			   struct ring_page *room)
{
	return page_store_choose(store, &(struct ring_window){from_ns, to_ns}, 1, room);
}

static void the_oldest_whole_pages_make_room(void **state)
{
	static struct ring_page room[PAGES * 4];
	struct page_store store;
	unsigned int chosen;

	(void)state;
	assert_true(page_store_open(&store, 3, 0, PAGE, DATA));
	for (int i = 0; i < PAGES; i++)
		pass(&store, 1000 * i, 15, 0);
	assert_int_equal(choose(&store, 0, INT64_MAX, room), PAGES);
	assert_false(room[0].dropped);
	for (int i = PAGES; i < 3 * PAGES + 7; i++) {
		pass(&store, 1000 * i, 15, 0);
		chosen = choose(&store, 0, INT64_MAX, room);
		assert_int_equal(chosen, PAGES);
		assert_true(room[0].dropped); /* those before it are gone */
		assert_false(room[1].dropped);
		for (unsigned int p = 0; p < chosen; p++) {
			int64_t time_ns;

			assert_int_equal(room[p].first_ns, 1000 * (i + 1 - PAGES + (int)p));
			memcpy(&time_ns, room[p].bytes, sizeof(time_ns));
			assert_int_equal(time_ns, room[p].first_ns);
			assert_int_equal(room[p].cpu, 3);
			assert_int_equal(room[p].len, DATA + 15 * 16);
		}
	}
	page_store_close(&store);
}

static void pages_of_any_length_stay_whole_and_in_order(void **state)
{
	static struct ring_page room[PAGES * 4];
	struct page_store store;
	unsigned int least = PAGES;

	(void)state;
	assert_true(page_store_open(&store, 0, 0, PAGE, DATA));
	for (int i = 0; i < 40 * PAGES; i++) {
		unsigned int chosen;

		pass(&store, 1000 * i, 1 + (unsigned int)(i * 7 + i / 13) % 15, 0);
		chosen = choose(&store, 0, INT64_MAX, room);
		for (unsigned int p = 0; p < chosen; p++) {
			int number = i + 1 - (int)chosen + (int)p;
			int64_t time_ns;

			memcpy(&time_ns, room[p].bytes, sizeof(time_ns));
			assert_int_equal(time_ns, 1000 * number);
			assert_int_equal(room[p].len, DATA + 16 * (1 + (number * 7 + number / 13) % 15));
			assert_true(p + 1 == chosen || room[p].until_ns == room[p + 1].first_ns);
		}
		least = i > 2 * PAGES && chosen < least ? chosen : least;
	}
	assert_in_range(least, PAGES, 4 * PAGES); /* shorter pages take less room */
	page_store_close(&store);
}

static void many_short_pages_do_not_outgrow_the_list(void **state)
{
	static struct ring_page room[PAGES * 4];
	struct page_store store;

	(void)state;
	assert_true(page_store_open(&store, 0, 0, PAGE, DATA));
	for (int i = 0; i < 9 * PAGES; i++)
		pass(&store, 1000 * i, 1, 0);
	assert_int_equal(choose(&store, 0, INT64_MAX, room), store.max);
	assert_int_equal(room[store.max - 1].first_ns, 1000 * (9 * PAGES - 1));
	page_store_close(&store);
}

static void only_pages_within_a_window_are_chosen(void **state)
{
	const struct ring_window windows[] = {{2500, 3500}, {100, 900}};
	static struct ring_page room[PAGES * 4];
	struct page_store store;

	(void)state;
	assert_true(page_store_open(&store, 0, 0, PAGE, DATA));
	pass(&store, 1000, 0, 0); /* without events: left out */
	for (int i = 1; i < 5; i++)
		pass(&store, 1000 * i, 2, i == 4 ? 1U << 31 : 0);
	assert_int_equal(page_store_choose(&store, windows, 2, room), 2);
	assert_int_equal(room[0].first_ns, 2000);
	assert_int_equal(room[1].first_ns, 3000);
	/* what the kernel overwrote is in no page: the one before ends with its last event */
	assert_int_equal(room[1].until_ns, 3002);
	assert_int_equal(choose(&store, 3003, 3999, room), 0);
	assert_int_equal(choose(&store, 4000, 4000, room), 1);
	assert_true(room[0].dropped);
	page_store_close(&store);
}

static void a_page_lasts_until_its_ring_was_empty(void **state)
{
	static struct ring_page room[PAGES * 4];
	struct page_store store;
	struct trace_page read;
	int64_t later_ns;

	(void)state;
	assert_true(page_store_open(&store, 0, 0, PAGE, DATA));
	assert_false(page_store_read(&store, ends[0], &read));
	pass(&store, 1000, 2, 0);
	later_ns = clock_now_ns(CLOCK_MONOTONIC) + 1;
	while (clock_now_ns(CLOCK_MONOTONIC) <= later_ns)
		;
	assert_int_equal(choose(&store, later_ns, INT64_MAX, room), 0);
	assert_false(page_store_read(&store, ends[0], &read));
	assert_int_equal(choose(&store, later_ns, INT64_MAX, room), 1);
	pass(&store, 2000, 2, 0);
	assert_int_equal(choose(&store, 1000, 1000, room), 1);
	assert_int_equal(room[0].until_ns, 2000);
	page_store_close(&store);
}

static void a_store_holds_more_than_its_ring(void **state)
{
	static struct ring_page room[5 * PAGES * 5];
	struct page_store store;

	(void)state;
	assert_true(page_store_open(&store, 0, (size_t)4 * PAGES * PAGE, PAGE, DATA));
	for (int i = 0; i < 6 * PAGES; i++)
		pass(&store, 1000 * i, 15, 0);
	assert_int_equal(choose(&store, 0, INT64_MAX, room), 5 * PAGES);
	page_store_close(&store);
	assert_true(page_store_open(&store, 0, (size_t)8 * PAGES * PAGE, PAGE, DATA));
	assert_int_equal(store.size, 10 * PAGES * PAGE);
	page_store_close(&store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_oldest_whole_pages_make_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pages_of_any_length_stay_whole_and_in_order, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(many_short_pages_do_not_outgrow_the_list, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_pages_within_a_window_are_chosen, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_page_lasts_until_its_ring_was_empty, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_store_holds_more_than_its_ring, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
