// SPDX-License-Identifier: MIT
/* The histogram against the table in docs/formats/histogram.md, which is read here. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "tests/check.h"
#include "tests/cm.h"

#define SEGMENTS 19

static struct row {
	int64_t from, to, width, first_bin;
} rows[SEGMENTS];

/* A number with commas in it; *text moves behind the next bar. */
static int64_t cell(const char **text)
{
	int64_t value = 0;

	for (; **text && **text != '|'; (*text)++) {
		if (isdigit((unsigned char)**text))
			value = value * 10 + (**text - '0');
	}
	assert_int_equal(**text, '|');
	(*text)++;
	return value;
}

static int read_table(void **state)
{
	char line[512];
	int count = 0;
	FILE *file = fopen(HISTOGRAM_DOC, "r");

	(void)state;
	if (!file)
		return 1;
	while (fgets(line, sizeof(line), file)) {
		const char *text = line + 1;

		if (line[0] != '|' || !isdigit((unsigned char)line[2]))
			continue;
		if (count == SEGMENTS)
			return 1;
		rows[count].from = cell(&text);
		rows[count].to = cell(&text);
		rows[count].width = cell(&text);
		rows[count].first_bin = cell(&text);
		count++;
	}
	fclose(file);
	return count != SEGMENTS;
}

static void every_edge_is_where_the_table_says(void **state)
{
	uint32_t bin = 0;

	(void)state;
	for (int r = 0; r < SEGMENTS; r++) {
		assert_int_equal(rows[r].first_bin, bin);
		assert_int_equal((rows[r].to - rows[r].from) % rows[r].width, 0);
		for (int64_t low = rows[r].from; low < rows[r].to; low += rows[r].width, bin++) {
			int64_t high = low + rows[r].width - 1;

			assert_int_equal(histogram_bin(low), bin);
			assert_int_equal(histogram_bin(high), bin);
			assert_int_equal(histogram_upper(bin), high);
			if (bin)
				assert_int_equal(histogram_upper(bin - 1), low - 1);
		}
	}
	assert_int_equal(bin, HISTOGRAM_BINS - 1);
}

static void ten_seconds_and_more_overflow(void **state)
{
	(void)state;
	assert_int_equal(histogram_bin(INT64_C(9999999999)), HISTOGRAM_BINS - 2);
	assert_int_equal(histogram_bin(INT64_C(10000000000)), HISTOGRAM_BINS - 1);
	assert_int_equal(histogram_bin(INT64_MAX), HISTOGRAM_BINS - 1);
	assert_true(histogram_upper(HISTOGRAM_BINS - 1) == INT64_MAX);
	assert_true(histogram_upper(UINT32_MAX) == INT64_MAX);
}

static void a_bin_is_at_most_one_percent_wide(void **state)
{
	(void)state;
	for (uint32_t bin = histogram_bin(10); bin < HISTOGRAM_BINS - 1; bin++) {
		int64_t low = histogram_upper(bin - 1) + 1;

		assert_true((histogram_upper(bin) - low) * 100 <= low);
	}
}

static void one_microsecond_bins_are_exact_sums_up_to_ten_milliseconds(void **state)
{
	(void)state;
	for (int64_t us = 1; us <= 10000; us++)
		assert_int_equal(histogram_upper(histogram_bin(us * 1000) - 1), us * 1000 - 1);
}

static void a_value_lies_in_its_bin(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		int64_t value = (int64_t)(next_random(&random) >> (1 + next_random(&random) % 63));
		uint32_t bin = histogram_bin(value);

		assert_true(bin < HISTOGRAM_BINS && value <= histogram_upper(bin));
		assert_true(!bin || value > histogram_upper(bin - 1));
	}
}

static void counts_are_kept_and_cleared(void **state)
{
	struct histogram h = {0};

	(void)state;
	histogram_clear(&h);
	assert_true(h.low > h.high);
	histogram_add(&h, 1500);
	histogram_add(&h, 1500);
	histogram_add(&h, INT64_MAX);
	assert_int_equal(histogram_count(&h, histogram_bin(1500)), 2);
	assert_int_equal(histogram_count(&h, HISTOGRAM_BINS - 1), 1);
	assert_int_equal(h.low, histogram_bin(1500));
	assert_int_equal(h.high, HISTOGRAM_BINS - 1);
	histogram_add(&h, 0);
	assert_int_equal(h.low, 0);
	histogram_clear(&h);
	for (uint32_t bin = 0; bin < HISTOGRAM_BINS; bin++)
		assert_int_equal(histogram_count(&h, bin), 0);
	histogram_free(&h);
}

/* 64 CPUs have a window each: an empty one is small, and a narrow one not much larger. */
static void little_memory_is_taken(void **state)
{
	struct histogram h = {0};
	size_t pages = 0;

	(void)state;
	assert_true(sizeof(h) < 1024);
	histogram_clear(&h);
	for (int64_t ns = 1000; ns < 5000; ns++)
		assert_true(histogram_add(&h, ns));
	for (size_t page = 0; page < HISTOGRAM_PAGES; page++)
		pages += h.page[page] != NULL;
	assert_true(pages <= 4);
	histogram_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_edge_is_where_the_table_says),
		cmocka_unit_test(ten_seconds_and_more_overflow),
		cmocka_unit_test(a_bin_is_at_most_one_percent_wide),
		cmocka_unit_test(one_microsecond_bins_are_exact_sums_up_to_ten_milliseconds),
		cmocka_unit_test(a_value_lies_in_its_bin),
		cmocka_unit_test(counts_are_kept_and_cleared),
		cmocka_unit_test(little_memory_is_taken),
	};

	return cmocka_run_group_tests(tests, read_table, NULL);
}
