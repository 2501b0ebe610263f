// SPDX-License-Identifier: MIT
/* The age of a spool counts on after a restart and a boot. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "ext/recorder/engine/age.h"
#include "tests/check.h"
#include "tests/cm.h"

#define DAY_NS (INT64_C(86400) * NS_PER_S)

static char path[64];
static struct spool spool;

static int open_spool(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/rtgauge-age-XXXXXX");
	return mkdtemp(path) ? spool_open(&spool, path, SPOOL_BYTES_MIN) : -1;
}

static int close_spool(void **state)
{
	char command[100];

	(void)state;
	spool_close(&spool);
	snprintf(command, sizeof(command), "rm -rf %s", path);
	return system(command); /* NOLINT(cert-env33-c): a constant path */
}

static void assert_close(int64_t ns, int64_t wanted_ns)
{
	assert_true(ns >= wanted_ns && ns < wanted_ns + DAY_NS);
}

static void the_age_counts_on(void **state)
{
	struct age age;
	char text[300];

	(void)state;
	age_read(&age, &spool, "b");
	assert_close(age_now(&age), 0);
	age.known_ns = 30 * DAY_NS;
	age_write(&age, &spool, "b");
	age_read(&age, &spool, "b");
	assert_close(age_now(&age), 30 * DAY_NS);
	age_read(&age, &spool, "another");
	assert_close(age_now(&age), 30 * DAY_NS);
	snprintf(text, sizeof(text),
		 "{\"age_ns\":%lld,\"boot_id\":\"b\",\"boottime_ns\":1,\"realtime_ns\":%lld}",
		 (long long)(30 * DAY_NS), (long long)(clock_now_ns(CLOCK_REALTIME) - 7 * DAY_NS));
	assert_int_equal(spool_put(&spool, "age.json", text), 0);
	age_read(&age, &spool, "another");
	assert_close(age_now(&age), 37 * DAY_NS);
	snprintf(text, sizeof(text),
		 "{\"age_ns\":%lld,\"boot_id\":\"b\",\"boottime_ns\":1,\"realtime_ns\":%lld}",
		 (long long)(30 * DAY_NS), (long long)(clock_now_ns(CLOCK_REALTIME) + 7 * DAY_NS));
	assert_int_equal(spool_put(&spool, "age.json", text), 0);
	age_read(&age, &spool, "another"); /* the wall clock was set back */
	assert_close(age_now(&age), 30 * DAY_NS);
}

/* Machines without a battery begin in 1970, until the network or somebody sets the clock. */
static void a_clock_that_was_not_set_adds_no_decades(void **state)
{
	struct age age;

	(void)state;
	assert_int_equal(spool_put(&spool, "age.json",
				   "{\"age_ns\":60000000000,\"boot_id\":\"b\",\"boottime_ns\":1,"
				   "\"realtime_ns\":100000000000}"),
			 0);
	age_read(&age, &spool, "another");
	assert_close(age_now(&age), 60 * NS_PER_S);
}

static void a_damaged_file_means_a_new_folder(void **state)
{
	static const char *const texts[] = {"", "{}", "{\"age_ns\":-5}",
					    "{\"age_ns\":99999999999999999999,\"boottime_ns\":x}"};
	struct age age;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(spool_put(&spool, "age.json", texts[i]), 0);
		age_read(&age, &spool, "b");
		assert_close(age_now(&age), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_age_counts_on, open_spool, close_spool),
		cmocka_unit_test_setup_teardown(a_clock_that_was_not_set_adds_no_decades, open_spool,
						close_spool),
		cmocka_unit_test_setup_teardown(a_damaged_file_means_a_new_folder, open_spool, close_spool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
