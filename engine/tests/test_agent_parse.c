// SPDX-License-Identifier: MIT
/* IDs and labels, /proc/PID/stat, the lock's line, patterns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/glob.h"
#include "agent/machine_lock.h"
#include "agent/process.h"
#include "agent/text.h"
#include "base/error.h"
#include "tests/cm.h"

static void ids_and_labels(void **state)
{
	char long_id[130];

	(void)state;
	memset(long_id, 'a', 129);
	long_id[129] = '\0';
	assert_false(text_is_id(long_id));
	assert_true(text_is_id(long_id + 1));
	assert_true(text_is_id("2026-11-21T10-03-22Z-host-quick_7f3a.x:y@z+1"));
	assert_false(text_is_id(""));
	assert_false(text_is_id("a b"));
	assert_false(text_is_id("a/b"));
	assert_true(text_is_plain("\xc3\xa4 b", 4));
	assert_false(text_is_plain("abcde", 4));
	assert_false(text_is_plain("a\nb", 9));
	assert_false(text_is_plain("\xff", 9));
	assert_false(text_is_plain("\x7f", 9));
	assert_true(text_is_plain("\xc2\xa0 \xe2\x80\x93 \xe2\x82\xac \xd8\x9b \xef\xbb\xb0", 20));
	assert_false(text_is_plain("a\xc2\x9b"
				   "31m",
				   9));
	assert_false(text_is_plain((const char[]){(char)0xe2, (char)0x80, (char)0xae, 0}, 9));
	assert_false(text_is_plain("\xe2\x80\x8b", 9));
	assert_false(text_is_plain((const char[]){(char)0xe2, (char)0x81, (char)0xa6, 0}, 9));
	assert_false(text_is_plain("\xd8\x9c", 9));
	assert_false(text_is_plain("\xef\xbb\xbf", 9));
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

#define TIMES "00000000000000000007 00000000000000000000\n"
#define HOLDER TIMES "{\"type\":\"lock\",\"run\":\"r1\",\"label\":\"\","
#define FIGURES "\"pid\":5,\"start\":1,\"pid_namespace\":2,\"lease_ns\":3"
#define REST FIGURES "}\n"

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
	check_holder(TIMES "{\"type\":\"lock\",\"run\":\"r1\",\"label\":\"a \\\"b\\\"\"," REST, "r1",
		     "a \"b\"");
	check_holder(TIMES "{\"type\":\"lock\",\"run\":\"r 1\",\"label\":\"\"," REST, "", "");
	check_holder(TIMES "{\"type\":\"lock\",\"run\":\"r1\",\"label\":\"\\u001b[2J\"," REST, "", "");
	check_holder("9" TIMES "{\"type\":\"lock\",\"run\":\"r1\",\"label\":\"\"," REST, "", "");
	check_holder("{\"type\":\"lock\",\"run\":\"r1\",\"label\":\"\"," REST, "", "");
	check_holder(TIMES "{\"type\":\"lock\",\"run\":\"r1\",\"label\":\"\",\"pid\":0}\n", "", "");
	check_holder(HOLDER FIGURES ",\"host_pid\":9}\n", "r1", "");
	check_holder(HOLDER FIGURES ",\"host_pid\":0}\n", "", "");
	check_holder(HOLDER FIGURES ",\"host_pid\":9,\"a\":1}\n", "", "");
	check_holder(HOLDER FIGURES ",\"a\":1}\n", "", "");
	check_holder(TIMES, "", "");
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
		cmocka_unit_test(ids_and_labels),
		cmocka_unit_test(a_process_is_read_whatever_its_name),
		cmocka_unit_test(a_holder_is_believed_only_in_the_exact_form),
		cmocka_unit_test(patterns_match_as_in_a_shell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
