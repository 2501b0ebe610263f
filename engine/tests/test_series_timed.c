// SPDX-License-Identifier: MIT
/* A series whose samples have their own times: windows, totals, the end, the samples file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/series.h"
#include "tests/check.h"
#include "tests/cm.h"

#define SECOND INT64_C(1000000000)
#define START (77 * SECOND + 5)

struct said {
	char *text;
	size_t size;
	struct json j;
};

static void begin(struct said *said, struct series *s, int64_t warm_up_ns, int64_t measured_ns)
{
	json_start(&said->j, open_memstream(&said->text, &said->size));
	*s = (struct series){.id = 2, .cpu = -1, .metric = "switch", .labels = {{"method", "pipe"}}};
	series_timed(s, START, warm_up_ns, measured_ns);
	series_begin(s);
}

static void end(struct said *said, struct series *s, bool stopped)
{
	series_end(s, stopped, &said->j);
	series_summary(s, NULL, &said->j);
	fclose(said->j.out);
}

static int64_t number(const char *from, const char *key)
{
	const char *at = strstr(from, key);

	assert_non_null(at);
	return strtoll(at + strlen(key), NULL, 10);
}

/* The nth window's line. */
static const char *window(const struct said *said, unsigned int n)
{
	const char *at = strstr(said->text, "{\"type\":\"window\"");

	while (at && n--)
		at = strstr(at + 1, "{\"type\":\"window\"");
	return at;
}

static void samples_are_in_the_window_of_their_time(void **state)
{
	struct said said;
	struct series s;

	(void)state;
	begin(&said, &s, SECOND / 2, 3 * SECOND);
	assert_true(series_feed_timed(&s, START + 1, 900, &said.j));		  /* warm-up */
	assert_true(series_feed_timed(&s, START + SECOND / 2 - 1, 950, &said.j)); /* its last ns */
	assert_true(series_feed_timed(&s, START + SECOND / 2, 10, &said.j));
	assert_true(series_feed_timed(&s, START + SECOND, 30, &said.j));
	assert_true(series_feed_timed(&s, START + 3 * SECOND, 20, &said.j));
	assert_false(series_feed_timed(&s, START + SECOND / 2 + 3 * SECOND, 99, &said.j));
	end(&said, &s, false);
	assert_int_equal(number(window(&said, 0), "\"count\":"), 2);
	assert_int_equal(number(window(&said, 1), "\"count\":"), 2);
	assert_int_equal(number(window(&said, 1), "\"start_ns\":"), START + SECOND / 2);
	assert_int_equal(number(window(&said, 2), "\"count\":"), 0);
	assert_int_equal(number(window(&said, 3), "\"count\":"), 1);
	assert_int_equal(number(window(&said, 3), "\"end_ns\":"), START + SECOND / 2 + 3 * SECOND);
	assert_null(window(&said, 4));
	assert_non_null(strstr(
		said.text,
		"\"type\":\"outlier\",\"series\":2,\"time_ns\":78000000005,\"value_ns\":30,\"cpu\":null"));
	assert_non_null(strstr(said.text, "\"count\":3,\"missed\":0,\"min_ns\":10,\"max_ns\":30"));
	free(said.text);
	series_free(&s);
}

static void a_stop_cuts_at_what_was_reached(void **state)
{
	(void)state;
	for (int reached = 0; reached < 2; reached++) {
		struct said said;
		struct series s;

		begin(&said, &s, 0, INT64_MAX);
		series_feed_timed(&s, START + 100, 5, &said.j);
		if (reached)
			s.reached_ns = START + SECOND + 7;
		end(&said, &s, true);
		assert_int_equal(number(window(&said, reached), "\"end_ns\":"),
				 reached ? START + SECOND + 7 : START + 101);
		assert_null(window(&said, reached + 1));
		free(said.text);
		series_free(&s);
	}
}

/* The clocks of two CPUs may differ: such a sample is reported, but is in no figure. */
static void what_ends_before_it_begins_is_impossible(void **state)
{
	struct said said;
	struct series s;

	(void)state;
	begin(&said, &s, 0, SECOND);
	series_feed_timed(&s, START + 100, -3, &said.j);
	series_feed_timed(&s, START + 90, 4, &said.j);
	end(&said, &s, false);
	assert_non_null(strstr(said.text, "\"lost\":0,\"impossible\":1"));
	assert_int_equal(number(window(&said, 0), "\"count\":"), 1);
	free(said.text);
	series_free(&s);
}

/* The sign is kept: bin -b holds the negatives of bin b's values. */
static void a_signed_series_keeps_its_signs(void **state)
{
	struct said said;
	struct series s;
	struct histogram negatives = {0};

	(void)state;
	begin(&said, &s, 0, SECOND);
	s.negatives = &negatives;
	series_begin(&s);
	series_feed_timed(&s, START + 1, -300, &said.j);
	series_feed_timed(&s, START + 2, 0, &said.j);
	series_feed_timed(&s, START + 3, -5, &said.j);
	series_feed_timed(&s, START + 4, 5, &said.j);
	series_feed_timed(&s, START + 5, -5, &said.j);
	end(&said, &s, false);
	assert_non_null(strstr(said.text, "\"bins\":\"1PCqPEKCKC\","));
	assert_non_null(
		strstr(said.text, "\"count\":5,\"missed\":0,\"min_ns\":-300,\"max_ns\":5,\"sum_ns\":-305,"));
	assert_non_null(strstr(said.text, "\"impossible\":0"));
	assert_non_null(strstr(said.text, "\"value_ns\":-300,"));
	free(said.text);
	series_free(&s);
}

static void what_it_misses_it_is_told(void **state)
{
	struct said said;
	struct series s;

	(void)state;
	begin(&said, &s, 0, 2 * SECOND);
	series_feed_timed(&s, START + 1, 10, &said.j);
	series_miss_timed(&s, START + 2, 150, &said.j);
	series_miss_timed(&s, START + SECOND, 100, &said.j);
	series_miss_timed(&s, START + 2 * SECOND, 100, &said.j); /* after the end */
	end(&said, &s, false);
	assert_int_equal(number(window(&said, 0), "\"missed\":"), 1);
	assert_non_null(strstr(window(&said, 0), "\"missed_bins\":\"sJC\""));
	assert_int_equal(number(window(&said, 1), "\"missed\":"), 1);
	assert_non_null(strstr(said.text, "\"count\":1,\"missed\":2,\"min_ns\":10,"));
	free(said.text);
	series_free(&s);
}

static void nothing_fed_has_windows_all_the_same(void **state)
{
	struct said said;
	struct series s;

	(void)state;
	begin(&said, &s, 0, 2 * SECOND);
	end(&said, &s, false);
	assert_non_null(window(&said, 1));
	assert_null(window(&said, 2));
	free(said.text);
	series_free(&s);
}

static void it_is_announced_with_its_labels(void **state)
{
	struct said said;
	struct series s;

	(void)state;
	begin(&said, &s, 0, SECOND);
	series_announce(&s, &said.j);
	fclose(said.j.out);
	assert_string_equal(
		said.text,
		"{\"type\":\"series\",\"series\":2,\"metric\":\"switch\",\"unit\":\"ns\",\"labels\":{\"method\":\"pipe\"}}\n");
	free(said.text);
	series_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_in_the_window_of_their_time),
		cmocka_unit_test(a_stop_cuts_at_what_was_reached),
		cmocka_unit_test(what_ends_before_it_begins_is_impossible),
		cmocka_unit_test(a_signed_series_keeps_its_signs),
		cmocka_unit_test(what_it_misses_it_is_told),
		cmocka_unit_test(nothing_fed_has_windows_all_the_same),
		cmocka_unit_test(it_is_announced_with_its_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
