// SPDX-License-Identifier: MIT
/* Distinguishes a thread that takes its CPU from one that sleeps, whatever throttling takes. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "rt/cpu_holder.h"
#include "rt/watchdog.h"
#include "tests/cm.h"

#define TICK_NS (NS_PER_S / 2)

/* The number of ticks after which a thread that uses these shares of alternate ticks counts as taking its
 * CPU; 0: never. */
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
	/* Throttling takes 50 ms of each second, the hypervisor 20 ms. */
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

static void test_a_line_of_proc_is_read(void **state)
{
	static const char tail[] =
		" S 1 2 3 0 -1 4194560 1 2 3 4 70 30 0 0 20 0 1 0 5 6 7 8 9 10 11 12 13 14 15 16 "
		"17 18 19 20 21 3 99 1 0 0 0\n";
	char line[512], text[160];
	struct thread_stat stat = {.pid = 12, .tid = 13};

	(void)state;
	snprintf(line, sizeof(line), "13 (a ) R 1 (b))%s", tail);
	assert_true(thread_stat_parse(line, &stat));
	assert_string_equal(stat.name, "a ) R 1 (b)");
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.used_ticks, 100);
	assert_int_equal(stat.cpu, 3);
	assert_string_equal(cpu_holder_text(&stat, text, sizeof(text)),
			    "a ) R 1 (b) (pid 12, thread 13, FIFO 99)");
	assert_false(thread_stat_parse("", &stat));
	assert_false(thread_stat_parse("13 (name", &stat));
	assert_false(thread_stat_parse("13 )name(", &stat));
	assert_false(thread_stat_parse("13 (name) S 1 2 3", &stat));
	snprintf(line, sizeof(line), "13 (%0200d)%s", 7, tail);
	assert_true(thread_stat_parse(line, &stat));
	assert_int_equal(strlen(stat.name), sizeof(stat.name) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thread_that_never_sleeps),
		cmocka_unit_test(test_throttling_and_a_hypervisor_do_not_hide_it),
		cmocka_unit_test(test_a_thread_that_sleeps),
		cmocka_unit_test(test_a_line_of_proc_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
