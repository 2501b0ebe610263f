/* SPDX-License-Identifier: MIT
 *
 * How many moments a step keeps.
 */
#include "base/clock.h"
#include "harness/moment_budget.h"
#include "tests/cm.h"

#define US INT64_C(1000)
#define EVERY_NS (4 * NS_PER_S)

/* Offers a latency each 10 ms, and returns how many were kept. */
static int64_t offer(struct moment_budget *b, int64_t latency_ns, int64_t from_ns, int64_t number)
{
	int64_t before = b->moments;

	for (int64_t i = 0; i < number; i++) {
		int64_t end_ns = from_ns + i * NS_PER_S / 100;

		if (moment_budget_has(b, false, latency_ns, end_ns))
			moment_budget_take(b, latency_ns, end_ns);
	}
	return b->moments - before;
}

static void test_a_step_keeps_200_and_then_rare_ones(void **state)
{
	struct moment_budget budget = {0};

	(void)state;
	assert_int_equal(offer(&budget, 100 * US, 0, 1000), MOMENTS_MAX);
	assert_false(moment_budget_has(&budget, false, NS_PER_S, 20 * NS_PER_S));
	for (int i = 0; i < 4 * MOMENTS_MAX; i++) {
		assert_true(moment_budget_has(&budget, true, 100 * US, 20 * NS_PER_S));
		moment_budget_take(&budget, 100 * US, 20 * NS_PER_S);
	}
	assert_false(moment_budget_has(&budget, true, 100 * US, 20 * NS_PER_S));
}

static void test_a_recorder_goes_on_during_a_storm(void **state)
{
	struct moment_budget budget = {.every_ns = EVERY_NS};
	int64_t hour_ns = 3600 * NS_PER_S, kept;

	(void)state;
	kept = offer(&budget, 5000 * US, 0, hour_ns / (NS_PER_S / 100));
	assert_in_range(kept, hour_ns / EVERY_NS + MOMENT_BURST - 1, hour_ns / EVERY_NS + MOMENT_BURST);
	/* A wait or a trigger changes nothing. */
	moment_budget_take(&budget, 0, hour_ns);
	/* Latencies of other sizes are kept at once, also smaller ones. */
	assert_int_equal(offer(&budget, 12000 * US, hour_ns, 1000), MOMENT_BURST + 2);
	assert_int_equal(offer(&budget, 300 * US, hour_ns, 1), 1);
	/* One that took seconds hides nothing. */
	assert_int_equal(offer(&budget, 7 * NS_PER_S, hour_ns + 10 * NS_PER_S, 1), 1);
	assert_int_equal(offer(&budget, 10000 * US, hour_ns + 20 * NS_PER_S, 1), 1);
	/* The whole burst is there again after a quiet minute. */
	assert_int_equal(offer(&budget, 12000 * US, hour_ns + 90 * NS_PER_S, 100), MOMENT_BURST);
}

static void test_latencies_that_grow_are_not_all_kept(void **state)
{
	struct moment_budget budget = {.every_ns = EVERY_NS};
	int64_t kept = 0, end_ns = 0;

	(void)state;
	for (int64_t latency_ns = US; latency_ns < NS_PER_S; latency_ns += 10 * US) {
		end_ns += NS_PER_S / 1000;
		if (moment_budget_has(&budget, false, latency_ns, end_ns)) {
			moment_budget_take(&budget, latency_ns, end_ns);
			kept++;
		}
	}
	/* Between 1 us and 1 s are 20 sizes. */
	assert_in_range(kept, 10 * MOMENT_BURST, 20 * MOMENT_BURST + 2 * (end_ns / EVERY_NS));
}

static void test_maxima_do_not_hide_later_latencies(void **state)
{
	struct moment_budget budget = {.every_ns = EVERY_NS};

	(void)state;
	for (int i = 0; i < 500; i++) {
		assert_true(moment_budget_has(&budget, true, 5000 * US + i, NS_PER_S));
		moment_budget_take(&budget, 5000 * US + i, NS_PER_S);
	}
	assert_false(moment_budget_has(&budget, false, 5000 * US, NS_PER_S));
	assert_true(moment_budget_has(&budget, false, 5000 * US, NS_PER_S + EVERY_NS));
}

static void test_odd_latencies_have_a_size(void **state)
{
	struct moment_budget budget = {.every_ns = EVERY_NS};

	(void)state;
	for (int i = 0; i < 2; i++) {
		const int64_t latencies_ns[] = {INT64_MAX, 1, 0, -5};

		for (size_t at = 0; at < sizeof(latencies_ns) / sizeof(*latencies_ns); at++) {
			assert_true(moment_budget_has(&budget, false, latencies_ns[at], NS_PER_S));
			moment_budget_take(&budget, latencies_ns[at], NS_PER_S);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_step_keeps_200_and_then_rare_ones),
		cmocka_unit_test(test_a_recorder_goes_on_during_a_storm),
		cmocka_unit_test(test_latencies_that_grow_are_not_all_kept),
		cmocka_unit_test(test_maxima_do_not_hide_later_latencies),
		cmocka_unit_test(test_odd_latencies_have_a_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
