// SPDX-License-Identifier: MIT
/* Which samples get a moment, and which are counted because they cannot have one. */
#include <fcntl.h>

#include "harness/explain.c" /* NOLINT(bugprone-suspicious-include): its parts are static */

#include "tests/check.h"
#include "tests/cm.h"

static bool somebody(const struct harness *h, const struct series *s, struct explained *who)
{
	(void)h;
	(void)s;
	*who = (struct explained){.tid = 7};
	return true;
}

static void switch_nothing(bool on)
{
	(void)on;
}

static void latencies_without_events_are_counted_not_all_samples(void **state)
{
	struct series s = {.id = 3, .measuring = true};

	(void)state;
	assert_true(get_memory());
	explain.who = somebody;
	explain_options.above_ns = 1000;
	explain_cost_begin(clock_now_ns(CLOCK_MONOTONIC), NS_PER_S, switch_nothing);
	for (int64_t i = 0; i < 100; i++)
		sample_taken(&s, i, 500 - i % 7);
	assert_int_equal(explain.events_off, 1);
	sample_taken(&s, 100, 600);
	assert_int_equal(explain.events_off, 2); /* a new maximum */
	sample_taken(&s, 101, 2000);
	sample_taken(&s, 102, 1001);
	assert_int_equal(explain.events_off, 4); /* above */
	assert_int_equal(explain.candidate_count, 0);
	assert_int_equal(explain.maximum_ns[3], 0); /* a later one gets its moment */
}

/* Nothing that a trigger needs is lost by reading: the store holds more than the ring. */
static void a_moment_does_not_wait_for_the_events_after_a_trigger(void **state)
{
	const uint64_t head[] = {5000, 8}; /* the time of its first event, and how many bytes follow */
	const uint32_t record = 1 | 1U << 5;
	const struct explained who = {.cpu = 3, .tid = 7};
	const struct candidate late = {
		.kind = KIND_MAXIMUM, .release_ns = 6000, .latency_ns = 500, .who = who};
	struct series s = {.id = 3, .measuring = true};
	unsigned char page[64] = {0};
	struct page_store store;
	struct trace_page read;
	struct json j;
	int ends[2];
	char *text;

	(void)state;
	assert_int_equal(pipe2(ends, O_DIRECT | O_NONBLOCK | O_CLOEXEC), 0);
	assert_true(page_store_open(&store, 3, 0, sizeof(page), sizeof(head)));
	memcpy(page, head, sizeof(head));
	memcpy(page + sizeof(head), &record, sizeof(record));
	assert_int_equal(write(ends[1], page, sizeof(page)), sizeof(page));
	assert_true(page_store_read(&store, ends[0], &read));
	assert_true(ring_copy_share(&store, 1));
	explain.on = true;
	explain.data_offset = sizeof(head);
	explain_trigger(&s, clock_now_ns(CLOCK_MONOTONIC) + NS_PER_S, 1, &who);
	add_candidate(&late);
	stream_begin(&j);
	capture_begin();
	explain_take(&j);
	text = capture_end();
	assert_non_null(strstr(text, "\"type\":\"moment\""));
	assert_non_null(strstr(text, "\"release_ns\":6000"));
	free(text);
	assert_int_equal(explain.candidate_count, 0);
	assert_int_equal(explain.triggered_count, 1);
	ring_copy_close();
	page_store_close(&store);
	close(ends[0]);
	close(ends[1]);
}

static void what_was_lost_is_summed_for_each_cpu(void **state)
{
	const struct ring_page pages[] = {
		{.cpu = 2, .first_ns = 5000, .dropped = true, .dropped_count = 5},
		{.cpu = 2, .first_ns = 5500},
		{.cpu = 2, .first_ns = 6000, .dropped = true, .dropped_count = 7},
		{.cpu = 2, .first_ns = NS_PER_S, .dropped = true, .dropped_count = 90}, /* behind it */
		{.cpu = 4, .first_ns = 5000, .dropped = true, .dropped_count = 5},
		{.cpu = 4, .first_ns = 6000, .dropped = true},
		{.cpu = 5, .first_ns = 6000},
	};
	const struct candidate late = {.kind = KIND_MAXIMUM, .release_ns = 6000, .latency_ns = 500};
	struct json j;
	char *text;

	(void)state;
	stream_begin(&j);
	capture_begin();
	json_open(&j, NULL, '{');
	write_lost(&late, pages, sizeof(pages) / sizeof(pages[0]), &j);
	json_close(&j, '}');
	json_line(&j);
	text = capture_end();
	assert_string_equal(text, "{\"lost\":{\"2\":12,\"4\":-1}}\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latencies_without_events_are_counted_not_all_samples),
		cmocka_unit_test(what_was_lost_is_summed_for_each_cpu),
		cmocka_unit_test(a_moment_does_not_wait_for_the_events_after_a_trigger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
