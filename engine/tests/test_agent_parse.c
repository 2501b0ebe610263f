// SPDX-License-Identifier: MIT
/* Options, /proc/PID/stat, the lock's line, patterns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "agent/args.h"
#include "agent/glob.h"
#include "agent/machine_lock.h"
#include "agent/process.h"
#include "tests/cm.h"

static void numbers_are_whole_and_decimal(void **state)
{
	static const char *const wrong[] = {
		"", "-", "+1", " 1", "1 ", "0x1", "1e3", "9223372036854775808", "--1", "1.0", "a"};
	int64_t value;

	(void)state;
	assert_true(options_int("9223372036854775807", &value) && value == INT64_MAX);
	assert_true(options_int("-9223372036854775808", &value) && value == INT64_MIN);
	assert_true(options_int("007", &value) && value == 7);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(options_int(wrong[i], &value));
}

static void options_end_where_they_end(void **state)
{
	char *argv[] = {"verb", "--flag", "--text=a=b", "--number", "5", "--", "--flag", NULL};
	const char *text = NULL;
	int64_t number = 0;
	bool flag = false, dashes;
	const struct option_spec specs[] = {{"--flag", OPT_FLAG, &flag, 0, 0},
					    {"--text", OPT_TEXT, &text, 0, 0},
					    {"--number", OPT_INT, &number, 0, 9}};
	int rest;

	(void)state;
	assert_int_equal(args_parse(7, argv, specs, 3, &rest, &dashes), 0);
	assert_true(flag && dashes && number == 5 && rest == 6);
	assert_string_equal(text, "a=b");
	argv[1] = "-";
	assert_int_equal(args_parse(7, argv, specs, 3, &rest, &dashes), 0);
	assert_true(!dashes && rest == 1);
}

static void check_words(const char *word, const char *next)
{
	char *argv[] = {"verb", (char *)word, (char *)next, NULL};
	const char *text;
	int64_t number;
	bool flag, dashes;
	const struct option_spec specs[] = {{"--flag", OPT_FLAG, &flag, 0, 0},
					    {"--text", OPT_TEXT, &text, 0, 0},
					    {"--number", OPT_INT, &number, 0, 9}};
	int rest;

	assert_int_equal(args_parse(next ? 3 : 2, argv, specs, 3, &rest, &dashes), STATUS_USAGE);
}

static void wrong_options_are_usage_errors(void **state)
{
	(void)state;
	check_words("--text", NULL);
	check_words("--number", "10");
	check_words("--number", "-1");
	check_words("--number=", NULL);
	check_words("--flag=1", NULL);
	check_words("--fla", NULL);
	check_words("--flags", NULL);
	check_words("-x", NULL);
	check_words("--=", NULL);
}

static void ids_and_labels(void **state)
{
	char long_id[130];

	(void)state;
	memset(long_id, 'a', 129);
	long_id[129] = '\0';
	assert_false(args_is_id(long_id));
	assert_true(args_is_id(long_id + 1));
	assert_true(args_is_id("2026-11-21T10-03-22Z-host-quick_7f3a.x:y@z+1"));
	assert_false(args_is_id(""));
	assert_false(args_is_id("a b"));
	assert_false(args_is_id("a/b"));
	assert_true(args_is_plain("\xc3\xa4 b", 4));
	assert_false(args_is_plain("abcde", 4));
	assert_false(args_is_plain("a\nb", 9));
	assert_false(args_is_plain("\xff", 9));
	assert_false(args_is_plain("\x7f", 9));
}

static void a_process_is_read_whatever_its_name(void **state)
{
	struct process p;

	(void)state;
	assert_true(
		process_parse("7 (a) b) R (x)) S 3 7 7 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 318888 1 2\n", &p));
	assert_int_equal(p.pid, 7);
	assert_int_equal(p.parent, 3);
	assert_int_equal(p.state, 'S');
	assert_int_equal(p.start, 318888);
	assert_false(process_parse("7 (a) S 3 7 7 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0", &p));
	assert_false(process_parse("", &p));
	assert_false(process_parse("7 a S", &p));
	assert_false(
		process_parse("99999999999 (a) S 3 7 7 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 318888 1 2\n", &p));
	assert_true(process_read(getpid(), &p));
	assert_int_equal(p.parent, getppid());
	assert_true(process_lives(getpid(), p.start));
	assert_false(process_lives(getpid(), p.start + 1));
	assert_false(process_read(-1, &p));
}

static void check_holder(const char *text, const char *run, const char *label)
{
	struct holder holder;
	char *line = strdup(text);

	machine_lock_parse(line, &holder);
	assert_string_equal(holder.run, run);
	assert_string_equal(holder.label, label);
	free(line);
}

static void a_holder_is_believed_only_in_the_exact_form(void **state)
{
	(void)state;
	check_holder("{\"type\":\"lock\",\"run\":\"r1\",\"label\":\"a \\\"b\\\"\",\"pid\":5}\n", "r1",
		     "a \"b\"");
	check_holder("{\"type\":\"lock\",\"run\":\"r1\",\"label\":\"\",\"pid\":5}", "", "");
	check_holder("{\"type\":\"lock\",\"run\":\"r 1\",\"label\":\"\",\"pid\":5}\n", "", "");
	check_holder("{\"type\":\"lock\",\"run\":\"r1\",\"label\":\"\\u001b[2J\",\"pid\":5}\n", "", "");
	check_holder("{\"type\":\"lock\",\"run\":\"r1\",\"label\":\"\",\"pid\":0}\n", "", "");
	check_holder("", "", "");
}

static void patterns_match_as_in_a_shell(void **state)
{
	char dir[] = "/tmp/rtgauge-test-XXXXXX", text[128];
	static const char *const files[] = {"/cpu0/online", "/cpu1/online", "/cpu1/.dot", "/[x]"};
	struct glob_paths paths = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (int cpu = 0; cpu < 2; cpu++) {
		snprintf(text, sizeof(text), "%s/cpu%d", dir, cpu);
		assert_int_equal(mkdir(text, 0700), 0);
	}
	for (size_t i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "%s%s", dir, files[i]);
		fclose(fopen(text, "w"));
	}
	snprintf(text, sizeof(text), "%s/cpu[0-9]*//online", dir);
	assert_int_equal(glob_expand(text, &paths), 0);
	assert_int_equal(paths.count, 2);
	snprintf(text, sizeof(text), "%s/cpu1/*", dir);
	assert_int_equal(glob_expand(text, &paths), 0);
	assert_int_equal(paths.count, 3);
	snprintf(text, sizeof(text), "%s/*/nothing", dir);
	assert_int_equal(glob_expand(text, &paths), 0);
	assert_int_equal(paths.count, 4);
	assert_string_equal(paths.list[3], text);
	snprintf(text, sizeof(text), "%s/[x]", dir); /* no file is named x: the name itself */
	assert_int_equal(glob_expand(text, &paths), 0);
	assert_string_equal(paths.list[4], text);
	glob_paths_free(&paths);
	snprintf(text, sizeof(text), "%s/cpu*/", dir);
	assert_int_equal(glob_expand(text, &paths), 0);
	assert_int_equal(paths.count, 2);
	glob_paths_free(&paths);
	snprintf(text, sizeof(text), "rm -r %s", dir);
	assert_int_equal(system(text), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_whole_and_decimal),
		cmocka_unit_test(options_end_where_they_end),
		cmocka_unit_test(wrong_options_are_usage_errors),
		cmocka_unit_test(ids_and_labels),
		cmocka_unit_test(a_process_is_read_whatever_its_name),
		cmocka_unit_test(a_holder_is_believed_only_in_the_exact_form),
		cmocka_unit_test(patterns_match_as_in_a_shell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
