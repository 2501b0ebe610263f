// SPDX-License-Identifier: MIT
/* Which samples get a moment, and which are counted because they cannot have one. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latencies_without_events_are_counted_not_all_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
