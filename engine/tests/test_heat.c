// SPDX-License-Identifier: MIT
/* heat: zones of a folder as the kernel has them, whose temperatures change. */
#include "harness/heat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stream.h"
#include "tests/check.h"
#include "tests/cm.h"

static char folder[] = "/tmp/rtgauge-heat-XXXXXX";

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
		cmocka_unit_test(test_a_machine_without_zones_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
