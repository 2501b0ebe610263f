// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ext/schedulability/engine/task_list.h"
#include "tests/check.h"
#include "tests/cm.h"

static struct task_entry entries[TASK_LIST_MAX];

static int parse(const char *text, const char *says)
{
	char *said;
	int count;

	capture_begin();
	count = task_list_parse(text, entries);
	said = capture_end();
	if (says ? !strstr(said, says) : said[0] != '\0')
		fail_msg("said %s", said);
	free(said);
	return count;
}

static void a_set(void **state)
{
	(void)state;
	assert_int_equal(
		parse("0 99 10000000 3000000 10000000 0 first\n3 80 20000000 5000000 15000000 7 a b\n", NULL),
		2);
	assert_string_equal(entries[0].name, "first");
	assert_string_equal(entries[1].name, "a b");
	assert_int_equal(entries[1].cpu, 3);
	assert_int_equal(entries[1].priority, 80);
	assert_int_equal(entries[1].period_ns, 20000000);
	assert_int_equal(entries[1].execution_ns, 5000000);
	assert_int_equal(entries[1].deadline_ns, 15000000);
	assert_int_equal(entries[1].offset_ns, 7);
}

static void what_is_wrong_is_named(void **state)
{
	static const char *const wrong[][2] = {
		{"", "the tasks are missing"},
		{"\n", "task 1: write"},
		{"0 99 10 10", "task 1: write"},
		{"0 99 10000 10 10 0", "task 1: write"},
		{"0 99 10000 10 10 0 ", "1 ... 200 bytes"},
		{"-1 99 10000 10 10 0 a", "its CPU"},
		{"8192 99 10000 10 10 0 a", "its CPU"},
		{"0 0 10000 10 10 0 a", "its priority"},
		{"0 99 999 10 10 0 a", "its period"},
		{"0 99 3600000000001 10 10 0 a", "its period"},
		{"0 99 10000 11 10 0 a", "its execution"},
		{"0 99 10000 10 0 0 a", "its deadline"},
		{"0 99 10000 10 10 3600000000001 a", "its offset"},
		{"0 99 10000 10 10 0 a\n0 98 10000 10 10 0 a", "task 2: another task has this name"},
		{"0 99 10000 10 10 0 a\n0 99 10000 10 10 0 b", "task 2: another task of this CPU"},
		{"0 1234567890123456789012345678901234567890 1 1 1 1 a", "task 1: write"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(parse(wrong[i][0], wrong[i][1]), -1);
	assert_int_equal(parse("0 99 10000 10 10 0 a\n1 99 10000 10 10 0 b", NULL), 2);
}

static void no_more_than_there_is_room_for(void **state)
{
	char text[8192] = "";
	size_t length = 0;

	(void)state;
	for (int i = 0; i <= TASK_LIST_MAX; i++) {
		if (i == TASK_LIST_MAX)
			assert_int_equal(parse(text, NULL), TASK_LIST_MAX);
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%d %d 10000 10 10 0 t%d\n",
					   i / 50, i % 50 + 1, i);
	}
	assert_int_equal(parse(text, "at most 64 tasks"), -1);
}

static void utilisation_is_of_one_cpu(void **state)
{
	(void)state;
	assert_int_equal(parse("0 99 10000000 3000000 10000000 0 a\n1 99 20000000 5000000 20000000 0 b\n"
			       "0 98 3600000000000 3600000000000 3600000000000 0 c",
			       NULL),
			 3);
	assert_int_equal(task_list_utilisation(entries, 3, 0), 1300000);
	assert_int_equal(task_list_utilisation(entries, 3, 1), 250000);
	assert_int_equal(task_list_utilisation(entries, 3, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(no_more_than_there_is_room_for),
		cmocka_unit_test(utilisation_is_of_one_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
