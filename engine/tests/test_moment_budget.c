/* SPDX-License-Identifier: MIT
 *
 * How many moments a step keeps.
 */
#include "base/clock.h"
#include "harness/moment_budget.h"
#include "tests/cm.h"

#define US INT64_C(1000)
#define HALF_NS (10 * NS_PER_S)

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
	struct moment_budget budget = {.half_ns = HALF_NS};
	int64_t hour_ns = 3600 * NS_PER_S, minute_ns = 60 * NS_PER_S, kept;

	(void)state;
	/* Equal latencies in an hour: one for each halving of the newest. */
	kept = offer(&budget, 5000 * US, 0, hour_ns / (NS_PER_S / 100));
	assert_int_equal(kept, MOMENTS_MAX + (hour_ns - MOMENTS_MAX * NS_PER_S / 100) / HALF_NS);
	/* A wait or a trigger changes nothing. */
	moment_budget_take(&budget, 0, hour_ns);
	/* A larger one is kept at once, and for a while smaller ones are not. */
	assert_int_equal(offer(&budget, 12000 * US, hour_ns, 1), 1);
	assert_int_equal(offer(&budget, 5000 * US, hour_ns + 1, 1000), 0);
	/* The storm never ends, and much smaller ones come again after a quiet minute. */
	assert_int_equal(offer(&budget, 300 * US, hour_ns + minute_ns, 1), 1);
}

static void test_latencies_that_grow_are_not_all_kept(void **state)
{
	struct moment_budget budget = {.half_ns = HALF_NS, .moments = 10 * MOMENTS_MAX, .latest_ns = US};
	int64_t kept = 0, end_ns = 0;

	(void)state;
	for (int64_t latency_ns = US; latency_ns < NS_PER_S; latency_ns += 10 * US) {
		end_ns += NS_PER_S / 1000;
		if (moment_budget_has(&budget, false, latency_ns, end_ns)) {
			moment_budget_take(&budget, latency_ns, end_ns);
			kept++;
		}
	}
	assert_in_range(kept, end_ns / HALF_NS, 16 * (end_ns / HALF_NS + 1) + 20);
}

static void test_a_halving_ends_at_nothing(void **state)
{
	struct moment_budget budget = {.half_ns = 1, .moments = 10 * MOMENTS_MAX, .latest_ns = INT64_MAX};

	(void)state;
	assert_true(moment_budget_has(&budget, false, 1, INT64_MAX));
	assert_false(moment_budget_has(&budget, false, INT64_MAX - 1, -5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_step_keeps_200_and_then_rare_ones),
		cmocka_unit_test(test_a_recorder_goes_on_during_a_storm),
		cmocka_unit_test(test_latencies_that_grow_are_not_all_kept),
		cmocka_unit_test(test_a_halving_ends_at_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
