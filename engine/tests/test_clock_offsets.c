// SPDX-License-Identifier: MIT
/* clock_offsets: a setting of the wall clock, and what only looks like one. */
#include "probes/watch/clock_offsets.h"

#include <time.h>

#include "base/clock.h"
#include "tests/cm.h"

#define AHEAD_NS (INT64_C(1700000000) * NS_PER_S)

static int64_t now_ns, ahead_ns, slew_ns;
static int interrupted; /* so many of the next readings are followed by another task */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	int64_t ns = clock == CLOCK_REALTIME ? now_ns + ahead_ns : now_ns;

	time->tv_sec = ns / NS_PER_S;
	time->tv_nsec = ns % NS_PER_S;
	now_ns += interrupted > 0 ? 8 * (NS_PER_S / 1000) : 50;
	interrupted -= interrupted > 0;
	ahead_ns += slew_ns;
	return 0;
}

static int begin(void **state)
{
	static struct clock_offsets offsets;

	now_ns = NS_PER_S;
	ahead_ns = AHEAD_NS;
	slew_ns = interrupted = 0;
	clock_offsets_begin(&offsets);
	*state = &offsets;
	return 0;
}

static void test_a_setting_is_seen_once(void **state)
{
	struct clock_offsets *offsets = *state;

	ahead_ns -= 300 * (NS_PER_S / 1000);
	assert_in_range(-clock_offsets_read(offsets), 299 * (NS_PER_S / 1000), 301 * (NS_PER_S / 1000));
	assert_int_equal(clock_offsets_read(offsets), 0);
	assert_in_range(offsets->real_before_ns - offsets->real_ns, 299 * (NS_PER_S / 1000),
			301 * (NS_PER_S / 1000));
}

static void test_another_task_between_two_readings_is_no_setting(void **state)
{
	struct clock_offsets *offsets = *state;

	for (int count = 1; count < 60; count++) {
		interrupted = count;
		assert_int_equal(clock_offsets_read(offsets), 0);
		assert_int_equal(clock_offsets_read(offsets), 0);
	}
}

static void test_a_setting_while_others_run_is_seen_when_they_have_ended(void **state)
{
	struct clock_offsets *offsets = *state;

	ahead_ns += 5 * (NS_PER_S / 1000);
	interrupted = 30; /* all tries */
	assert_int_equal(clock_offsets_read(offsets), 0);
	assert_in_range(clock_offsets_read(offsets), 4 * (NS_PER_S / 1000), 6 * (NS_PER_S / 1000));
}

static void test_a_correction_by_ntp_is_no_setting(void **state)
{
	struct clock_offsets *offsets = *state;

	slew_ns = 10000; /* 100 us for ten readings */
	for (int i = 0; i < 200; i++)
		assert_int_equal(clock_offsets_read(offsets), 0);
	assert_true(ahead_ns - AHEAD_NS > 10 * (NS_PER_S / 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_setting_is_seen_once, begin),
		cmocka_unit_test_setup(test_another_task_between_two_readings_is_no_setting, begin),
		cmocka_unit_test_setup(test_a_setting_while_others_run_is_seen_when_they_have_ended, begin),
		cmocka_unit_test_setup(test_a_correction_by_ntp_is_no_setting, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
