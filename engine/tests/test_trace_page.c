// SPDX-License-Identifier: MIT
/* Pages of the kernel's trace buffer: every kind of entry, and pages that are damaged. */
#include <stdlib.h>
#include <string.h>

#include "probes/response/trace_page.h"
#include "tests/check.h"
#include "tests/cm.h"

#define DATA 16
#define ROOM 4096

struct built {
	unsigned char bytes[ROOM];
	size_t len;
};

static void word(struct built *b, uint32_t value)
{
	memcpy(b->bytes + b->len, &value, sizeof(value));
	b->len += sizeof(value);
}

static void begin(struct built *b, uint64_t time_ns)
{
	memset(b, 0, sizeof(*b));
	memcpy(b->bytes, &time_ns, sizeof(time_ns));
	b->len = DATA;
}

static void finish(struct built *b, struct trace_page *page, uint32_t flags)
{
	uint32_t commit = (uint32_t)(b->len - DATA) | flags;

	memcpy(b->bytes + 8, &commit, sizeof(commit));
	assert_true(trace_page_open(page, b->bytes, b->len, DATA));
}

static void entries_have_their_times(void **state)
{
	struct trace_page page;
	const unsigned char *record;
	struct built b;
	int64_t time_ns;
	size_t len;

	(void)state;
	begin(&b, 1000);
	word(&b, 2 | 7 << 5); /* eight bytes of data, 7 ns later */
	word(&b, 0x1234);
	word(&b, 0);
	word(&b, 30 | 5 << 5); /* time extend */
	word(&b, 3);
	word(&b, 0 | 1 << 5); /* the length is behind */
	word(&b, 12);
	word(&b, 0x5678);
	word(&b, 0);
	word(&b, 31 | 9 << 5); /* an absolute time */
	word(&b, 100);
	word(&b, 1 | 1 << 5);
	word(&b, 0x9abc);
	word(&b, 29); /* the rest is padding */
	word(&b, 0xffff);
	finish(&b, &page, 0);
	assert_false(page.dropped);
	record = trace_page_next(&page, &time_ns, &len);
	assert_non_null(record);
	assert_int_equal(time_ns, 1007);
	assert_int_equal(len, 8);
	assert_int_equal(record[0] | record[1] << 8, 0x1234);
	record = trace_page_next(&page, &time_ns, &len);
	assert_non_null(record);
	assert_int_equal(time_ns, 1007 + 5 + (INT64_C(3) << 27) + 1);
	assert_int_equal(len, 8);
	assert_int_equal(record[0] | record[1] << 8, 0x5678);
	record = trace_page_next(&page, &time_ns, &len);
	assert_non_null(record);
	assert_int_equal(time_ns, (INT64_C(100) << 27) + 9 + 1);
	assert_int_equal(record[0] | record[1] << 8, 0x9abc);
	assert_null(trace_page_next(&page, &time_ns, &len));
}

static void dropped_events_are_said(void **state)
{
	struct trace_page page;
	struct built b;

	(void)state;
	begin(&b, 5);
	word(&b, 1);
	word(&b, 1);
	finish(&b, &page, 1U << 31);
	assert_true(page.dropped);
}

/* Whatever the bytes are, every record lies within them, and it ends. */
static void damaged_pages_end(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 2000; seed++) {
		unsigned int length = seed % 256;
		unsigned char *bytes = malloc(length + 1);
		struct trace_page page;
		const unsigned char *record;
		int64_t time_ns;
		size_t len, records = 0;

		srand(seed);
		for (unsigned int i = 0; i < length; i++)
			bytes[i] = (unsigned char)rand();
		if (trace_page_open(&page, bytes, length, DATA)) {
			while ((record = trace_page_next(&page, &time_ns, &len))) {
				assert_true(record >= bytes + DATA);
				assert_true(record + len <= bytes + length);
				assert_true(++records < 256);
			}
		}
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_have_their_times),
		cmocka_unit_test(dropped_events_are_said),
		cmocka_unit_test(damaged_pages_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
