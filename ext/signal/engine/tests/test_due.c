// SPDX-License-Identifier: MIT
/* Stimuli of a fixed interval of 100, measured from 1000 to 2000: why one was not made. */
#include "ext/signal/engine/response/due.h"
#include "tests/cm.h"

static const struct due due = {.interval_ns = 100, .measured_ns = 1000, .end_ns = 2000};

struct expected {
	int64_t skipped, first_skipped_ns, next_ns;
	int64_t warm_up_skipped, warm_up_not_made, measured_skipped, measured_not_made;
};

static void check(int64_t due_ns, int64_t sent_ns, int64_t over_ns, struct expected expected)
{
	struct master_counts counts[2] = {0};
	struct stimulus stimulus = {.sent_ns = sent_ns};
	int64_t next_ns = due_ns + due.interval_ns;

	due_pass(&due, &stimulus, &next_ns, over_ns, counts);
	assert_int_equal(stimulus.skipped, expected.skipped);
	if (expected.skipped)
		assert_int_equal(stimulus.first_skipped_ns, expected.first_skipped_ns);
	assert_int_equal(next_ns, expected.next_ns);
	assert_int_equal(counts[0].skipped, expected.warm_up_skipped);
	assert_int_equal(counts[0].not_made, expected.warm_up_not_made);
	assert_int_equal(counts[1].skipped, expected.measured_skipped);
	assert_int_equal(counts[1].not_made, expected.measured_not_made);
}

static void in_time_nothing_is_passed_by(void **state)
{
	(void)state;
	check(1000, 1005, 1050, (struct expected){.next_ns = 1100});
	check(1000, 1005, 1100, (struct expected){.next_ns = 1100});
	check(1000, 1100, 1100,
	      (struct expected){.next_ns = 1100}); /* late, and the next one is still made */
}

static void what_passes_before_an_answer_is_the_slaves(void **state)
{
	(void)state;
	check(1000, 1005, 1101, (struct expected){1, 1100, 1200, .measured_skipped = 1});
	check(1000, 1005, 1450, (struct expected){4, 1100, 1500, .measured_skipped = 4});
}

static void what_passes_before_the_stimulus_is_the_masters(void **state)
{
	(void)state;
	check(1000, 1101, 1150, (struct expected){.next_ns = 1200, .measured_not_made = 1});
	check(1000, 1350, 1400, (struct expected){.next_ns = 1400, .measured_not_made = 3});
	check(1000, 1350, 1401,
	      (struct expected){1, 1400, 1500, .measured_skipped = 1, .measured_not_made = 3});
}

static void each_counts_in_the_phase_that_it_was_due_in(void **state)
{
	(void)state;
	check(700, 701, 1150, (struct expected){4, 800, 1200, .warm_up_skipped = 2, .measured_skipped = 2});
	check(700, 1150, 1160,
	      (struct expected){.next_ns = 1200, .warm_up_not_made = 2, .measured_not_made = 2});
	check(1800, 1850, 2350, (struct expected){5, 1900, 2400, .measured_skipped = 1});
}

static void at_the_end_the_master_is_late_too(void **state)
{
	struct master_counts counts[2] = {0};
	int64_t next_ns = 1700;

	(void)state;
	due_end(&due, &next_ns, 2500, counts);
	assert_int_equal(counts[1].not_made, 3);
	assert_int_equal(counts[1].skipped + counts[0].not_made, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_time_nothing_is_passed_by),
		cmocka_unit_test(what_passes_before_an_answer_is_the_slaves),
		cmocka_unit_test(what_passes_before_the_stimulus_is_the_masters),
		cmocka_unit_test(each_counts_in_the_phase_that_it_was_due_in),
		cmocka_unit_test(at_the_end_the_master_is_late_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
