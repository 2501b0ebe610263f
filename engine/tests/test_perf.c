/* SPDX-License-Identifier: MIT */
/* Records in perf's ring: in order, around its end, damaged, too large for the reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/perf.h"

#define SIZE 64

static struct {
	struct perf_event_mmap_page page;
	char data[SIZE];
} ring;

static void begin(uint64_t at)
{
	memset(&ring, 0, sizeof(ring));
	ring.page.data_offset = offsetof(__typeof__(ring), data);
	ring.page.data_size = SIZE;
	ring.page.data_head = ring.page.data_tail = at;
}

/* Writes a record with a byte as its content, as the kernel does. */
static void write_record(uint16_t size, char content)
{
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = size};

	for (uint64_t i = 0; i < size; i++)
		ring.data[(ring.page.data_head + i) % SIZE] =
			i < sizeof(header) ? ((const char *)&header)[i] : content;
	ring.page.data_head += size;
}

static void test_records_come_in_order_around_the_end(void **state)
{
	char record[SIZE];

	(void)state;
	begin(SIZE * UINT64_C(1000) - 20); /* even the second header is around the end */
	write_record(16, 'a');
	write_record(24, 'b');
	assert_int_equal(perf_ring_next(&ring.page, record, sizeof(record)), 16);
	assert_memory_equal(record + 8, "aaaaaaaa", 8);
	assert_int_equal(perf_ring_next(&ring.page, record, sizeof(record)), 24);
	assert_memory_equal(record + 8, "bbbbbbbbbbbbbbbb", 16);
	assert_int_equal(perf_ring_next(&ring.page, record, sizeof(record)), 0);
	assert_int_equal(ring.page.data_tail, ring.page.data_head);
}

static void test_a_damaged_or_large_record_is_dropped(void **state)
{
	const uint16_t sizes[] = {0, 7, 40, 48}; /* 40: more than was written; 48: more than the reader has */
	char record[32];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		begin(8);
		write_record(48, 'a');
		ring.page.data_head = 8 + (sizes[i] == 48 ? 48 : 32);
		memcpy(ring.data + 8 + offsetof(struct perf_event_header, size), &sizes[i], sizeof(sizes[i]));
		assert_int_equal(perf_ring_next(&ring.page, record, sizeof(record)), 0);
		assert_int_equal(ring.page.data_tail, ring.page.data_head);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_come_in_order_around_the_end),
		cmocka_unit_test(test_a_damaged_or_large_record_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
