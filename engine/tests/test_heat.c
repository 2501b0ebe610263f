// SPDX-License-Identifier: MIT
/* heat: zones of a folder as the kernel has them, whose temperatures change. */
#include "harness/heat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stream.h"
#include "tests/check.h"
#include "tests/cm.h"

static char folder[] = "/tmp/rtgauge-heat-XXXXXX";
static int64_t passes_ns; /* between two readings of the clock */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	static int64_t now_ns;

	(void)clock;
	now_ns += passes_ns;
	time->tv_sec = now_ns / NS_PER_S;
	time->tv_nsec = now_ns % NS_PER_S;
	return 0;
}

static void put(int zone, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/thermal_zone%d", folder, zone);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/thermal_zone%d/%s", folder, zone, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void expect(const char *lines)
{
	struct json j;
	char *text;

	stream_begin(&j);
	capture_begin();
	heat_write(&j);
	text = capture_end();
	assert_string_equal(text, lines);
	free(text);
}

static int begin(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(strcpy(folder, "/tmp/rtgauge-heat-XXXXXX")));
	put(0, "temp", "41000\n");
	put(0, "type", "cpu-thermal\n");
	put(3, "temp", "-5000\n");
	return 0;
}

static int end(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command); /* NOLINT(cert-env33-c): a folder of this test */
}

static void test_a_maximum_between_begin_and_end_is_kept(void **state)
{
	(void)state;
	heat_begin(folder, true);
	heat_look(NS_PER_S);
	put(0, "temp", "86000\n");
	put(3, "temp", "-9000\n");
	heat_look(NS_PER_S + NS_PER_S / 2); /* too early to read them again */
	put(0, "temp", "85000\n");
	heat_look(2 * NS_PER_S);
	put(0, "temp", "50000\n");
	expect("{\"type\":\"result\",\"name\":\"temperature\",\"labels\":{\"zone\":\"thermal_zone0 cpu-thermal\"},"
	       "\"values\":{\"max_millicelsius\":85000,\"readings\":3}}\n"
	       "{\"type\":\"result\",\"name\":\"temperature\",\"labels\":{\"zone\":\"thermal_zone3\"},"
	       "\"values\":{\"max_millicelsius\":-5000,\"readings\":3}}\n");
}

static void test_only_the_end_is_read_where_reading_disturbs(void **state)
{
	(void)state;
	heat_begin(folder, false);
	put(0, "temp", "90000\n");
	heat_look(100 * NS_PER_S);
	put(0, "temp", "60000\n");
	put(3, "temp", "x\n");
	expect("{\"type\":\"result\",\"name\":\"temperature\",\"labels\":{\"zone\":\"thermal_zone0 cpu-thermal\"},"
	       "\"values\":{\"max_millicelsius\":60000,\"readings\":1}}\n");
}

static void test_a_zone_that_is_slow_three_times_in_a_row_is_left_out(void **state)
{
	static const int64_t slow_ns = NS_PER_S / 1000;
	const int64_t took_ns[] = {slow_ns, 0, slow_ns, slow_ns, 0, slow_ns, slow_ns, slow_ns, 0, 0};

	(void)state;
	put(3, "temp", "x\n");
	heat_begin(folder, true);
	for (size_t i = 0; i < sizeof(took_ns) / sizeof(took_ns[0]); i++) {
		passes_ns = took_ns[i];
		heat_look((int64_t)(i + 1) * NS_PER_S);
	}
	put(0, "temp", "40000\n");
	expect("{\"type\":\"result\",\"name\":\"temperature\",\"labels\":{\"zone\":\"thermal_zone0 cpu-thermal\"},"
	       "\"values\":{\"max_millicelsius\":41000,\"readings\":9}}\n"); /* the ninth at the end */
}

static void test_a_machine_without_zones_writes_nothing(void **state)
{
	(void)state;
	heat_begin("/nowhere", true);
	heat_look(200 * NS_PER_S);
	expect("");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_maximum_between_begin_and_end_is_kept, begin, end),
		cmocka_unit_test_setup_teardown(test_only_the_end_is_read_where_reading_disturbs, begin, end),
		cmocka_unit_test_setup_teardown(test_a_zone_that_is_slow_three_times_in_a_row_is_left_out,
						begin, end),
		cmocka_unit_test(test_a_machine_without_zones_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
