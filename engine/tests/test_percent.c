// SPDX-License-Identifier: MIT
/* A share is compared exactly, also of few events. */
#include "base/percent.h"
#include "tests/cm.h"

static void a_share_of_few_events_is_not_rounded(void **state)
{
	(void)state;
	assert_true(percent_is_below(273, 306, 90)); /* 89.2 % */
	assert_true(percent_is_below(0, 1, 90));
	assert_true(percent_is_below(89, 99, 90));
	assert_false(percent_is_below(90, 100, 90));
	assert_false(percent_is_below(90, 99, 90));
	assert_false(percent_is_below(0, 0, 90));
	assert_true(percent_is_above(81, 100, 80));
	assert_false(percent_is_above(120, 150, 80));
	assert_true(percent_is_above(121, 150, 80));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_share_of_few_events_is_not_rounded)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
