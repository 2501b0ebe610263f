// SPDX-License-Identifier: MIT
/* A thread that takes its CPU is told from one that sleeps, whatever throttling takes. */
#include "rt/clock.h"
#include "rt/watchdog.h"
#include "tests/cm.h"

#define TICK_NS (NS_PER_S / 2)

/* After how many ticks a thread that uses these shares of a tick by turns is one that takes its CPU; 0:
 * never. */
static unsigned int ticks_until_full(int first_percent, int second_percent)
{
	struct hog_window window = {0};

	for (unsigned int tick = 1; tick <= 100; tick++) {
		int percent = tick % 2 ? first_percent : second_percent;

		if (hog_window_full(&window, TICK_NS / 100 * percent, TICK_NS, WATCHDOG_HOG_PERCENT))
			return tick;
	}
	return 0;
}

static void test_a_thread_that_never_sleeps(void **state)
{
	(void)state;
	assert_int_equal(ticks_until_full(100, 100), 4);
}

static void test_throttling_and_a_hypervisor_do_not_hide_it(void **state)
{
	(void)state;
	/* 50 ms of each second are taken by throttling, 20 ms by the hypervisor. */
	assert_int_equal(ticks_until_full(88, 98), 4);
	assert_int_equal(ticks_until_full(98, 75), 4);
}

static void test_a_thread_that_sleeps(void **state)
{
	(void)state;
	assert_int_equal(ticks_until_full(80, 80), 0);
	assert_int_equal(ticks_until_full(100, 65), 0);
	assert_int_equal(ticks_until_full(0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thread_that_never_sleeps),
		cmocka_unit_test(test_throttling_and_a_hypervisor_do_not_hide_it),
		cmocka_unit_test(test_a_thread_that_sleeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
