// SPDX-License-Identifier: MIT
/* quota: the counters of cpu.stat in both versions of control groups. */
#include "harness/quota.h"
#include "tests/cm.h"

static void test_version_1_counts_ns(void **state)
{
	struct quota_counts counts;

	(void)state;
	assert_true(
		quota_parse("nr_periods 9\nnr_throttled 7\nthrottled_time 81234567\nnr_bursts 0\n", &counts));
	assert_int_equal(counts.periods, 9);
	assert_int_equal(counts.times, 7);
	assert_int_equal(counts.ns, 81234567);
}

static void test_version_2_counts_us(void **state)
{
	struct quota_counts counts;

	(void)state;
	assert_true(
		quota_parse("usage_usec 5\nnr_periods 9\nnr_throttled 7\nthrottled_usec 81234\n", &counts));
	assert_int_equal(counts.times, 7);
	assert_int_equal(counts.ns, 81234000);
}

static void test_a_group_without_the_controller_does_not_tell(void **state)
{
	struct quota_counts counts;

	(void)state;
	assert_false(quota_parse("usage_usec 5\nuser_usec 4\nsystem_usec 1\n", &counts));
	assert_false(quota_parse("", &counts));
	assert_false(quota_parse("nr_throttled 7\n", &counts));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_1_counts_ns),
		cmocka_unit_test(test_version_2_counts_us),
		cmocka_unit_test(test_a_group_without_the_controller_does_not_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
