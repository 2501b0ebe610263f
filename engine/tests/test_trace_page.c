// SPDX-License-Identifier: MIT
/* Pages of the kernel's trace buffer: every kind of entry, and damaged pages. */
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/cm.h"
#include "trace/instance.h"
#include "trace/page.h"

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

static void the_number_of_dropped_events_is_behind_the_last_one(void **state)
{
	struct trace_page page;
	uint32_t commit;
	struct built b;

	(void)state;
	begin(&b, 5);
	word(&b, 1);
	word(&b, 1);
	commit = (uint32_t)(b.len - DATA) | 1U << 31 | 1U << 30;
	memcpy(b.bytes + 8, &commit, sizeof(commit));
	word(&b, 77);
	word(&b, 0);
	assert_true(trace_page_open(&page, b.bytes, b.len, DATA));
	assert_int_equal(page.dropped_count, 77);
	assert_true(trace_page_open(&page, b.bytes, b.len - 4, DATA)); /* cut off: not there */
	assert_true(page.dropped);
	assert_int_equal(page.dropped_count, 0);
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

static void fields_are_where_the_kernel_says(void **state)
{
	static const char format[] = "name: timerlat\nID: 18\nformat:\n"
				     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
				     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
				     "\tfield:unsigned int seqnum;\toffset:8;\tsize:4;\tsigned:0;\n"
				     "\tfield:int context;\toffset:12;\tsize:4;\tsigned:1;\n"
				     "\tfield:u64 timer_latency;\toffset:16;\tsize:8;\tsigned:0;\n";
	struct trace_field field;

	(void)state;
	assert_int_equal(trace_event_id(format), 18);
	assert_int_equal(trace_event_id("format:"), 0);
	assert_true(trace_find_field(format, "timer_latency", &field));
	assert_int_equal(field.offset, 16);
	assert_int_equal(field.size, 8);
	assert_false(trace_find_field(format, "latency", &field)); /* part of a name */
	assert_false(trace_find_field("\tfield:int context;\toffset:12;\n", "context", &field));
}

/* As Linux 6.12 has it. */
static void only_entries_of_the_known_form_are_read(void **state)
{
	char text[] = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
		      "\tarray       :   32 bits\n\n\tpadding     : type == 29\n"
		      "\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";

	(void)state;
	assert_true(trace_entries_known(text));
	strstr(text, "== 29")[4] = '8';
	assert_false(trace_entries_known(text));
	assert_false(trace_entries_known(""));
}

static void a_word_is_whole(void **state)
{
	(void)state;
	assert_true(trace_has_word("blk timerlat osnoise nop\n", "timerlat"));
	assert_true(trace_has_word("nop\n", "nop"));
	assert_false(trace_has_word("mytimerlat timerlat2\n", "timerlat"));
	assert_false(trace_has_word("", "nop"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_have_their_times),
		cmocka_unit_test(dropped_events_are_said),
		cmocka_unit_test(the_number_of_dropped_events_is_behind_the_last_one),
		cmocka_unit_test(damaged_pages_end),
		cmocka_unit_test(fields_are_where_the_kernel_says),
		cmocka_unit_test(only_entries_of_the_known_form_are_read),
		cmocka_unit_test(a_word_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
