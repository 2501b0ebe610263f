// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/error.h"
#include "base/options.h"
#include "tests/check.h"
#include "tests/cm.h"

static int64_t number, free_number;
static int choice;
static const char *word;
static struct cpuset cpus;
static bool flag, only_green;
static const char *const choices[] = {"red", "green", NULL};
static const struct option_entry table[] = {
	{.name = "number", .kind = OPTION_INT, .value = &number, .min = -5, .max = 10, .help = "a number"},
	{.name = "free",
	 .kind = OPTION_INT,
	 .value = &free_number,
	 .min = INT64_MIN,
	 .max = 100,
	 .help = "no least"},
	{.name = "choice", .kind = OPTION_CHOICE, .value = &choice, .choices = choices, .help = "a colour"},
	{.name = "long-word", .kind = OPTION_TEXT, .value = &word, .help = "a word"},
	{.name = "cpu", .kind = OPTION_CPUS, .value = &cpus, .help = "CPUs"},
	{.name = "flag", .kind = OPTION_FLAG, .value = &flag, .help = "a flag"},
	{.name = "only-green",
	 .kind = OPTION_FLAG,
	 .value = &only_green,
	 .only = {&choice, 1},
	 .help = "not of red"},
	{0},
};

/* The same options behind one of its own, one of them with other fields. */
static int64_t other_number;
static const struct option_entry one[] = {
	{.name = "number", .kind = OPTION_INT, .value = &number, .max = 10, .help = "a number"},
	{0},
};
static const struct option_entry two[] = {{.shared = one}, {.shared = one, .name = "second"}, {0}};
static const struct option_entry sharing[] = {
	{.name = "choice", .kind = OPTION_CHOICE, .value = &choice, .choices = choices, .help = "a colour"},
	{.shared = two},
	{.shared = one,
	 .name = "other",
	 .value = &other_number,
	 .min = 3,
	 .help = "another",
	 .only = {&choice, 1}},
	{0},
};

static int clear(void **state)
{
	(void)state;
	number = free_number = 0;
	choice = 0;
	word = NULL;
	cpuset_clear(&cpus);
	flag = only_green = false;
	other_number = 0;
	return 0;
}

/* Parses up to three words; *said is its standard output (to be freed). */
static int parse_by(const struct option_entry *by, char **said, const char *a, const char *b, const char *c)
{
	char *argv[] = {"verb", (char *)a, (char *)b, (char *)c, NULL};
	int argc = 1 + !!a + !!b + !!c, status;

	capture_begin();
	status = options_parse(by, argc, argv);
	*said = capture_end();
	return status;
}

static int parse(char **said, const char *a, const char *b, const char *c)
{
	return parse_by(table, said, a, b, c);
}

static void accept(const char *a, const char *b, const char *c)
{
	char *said;
	int status = parse(&said, a, b, c);

	if (status || *said)
		fail_msg("%s: %d %s", a, status, said);
	free(said);
}

static void refuse(const char *a, const char *b, const char *expected)
{
	char *said;
	int status = parse(&said, a, b, NULL);
	size_t len = strlen(said);

	assert_int_equal(status, STATUS_USAGE);
	assert_true(len && said[len - 1] == '\n');
	said[len - 1] = '\0';
	assert_true(check_json(said));
	assert_true(field_is(said, "type", "\"error\"") && field_is(said, "code", "\"usage\"") &&
		    field_int(said, "status") == 2);
	if (!strstr(said, expected))
		fail_msg("'%s' is not in %s", expected, said);
	free(said);
}

static void every_kind_is_read_in_both_forms(void **state)
{
	(void)state;
	accept("--number", "-5", "--flag");
	assert_true(number == -5 && flag);
	accept("--number=10", "--choice=green", "--long-word=a=b --c");
	assert_true(number == 10 && choice == 1);
	assert_string_equal(word, "a=b --c");
	accept("--cpu", "0-2,5", NULL);
	assert_true(cpuset_count(&cpus) == 4 && cpuset_has(&cpus, 5));
	accept("--number=1", "--number=2", "--cpu=7");
	assert_true(number == 2 && cpuset_count(&cpus) == 1 && cpuset_has(&cpus, 7));
	accept("--free=-9223372036854775808", NULL, NULL);
	assert_true(free_number == INT64_MIN);
	accept(NULL, NULL, NULL);
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	refuse("--number", NULL, "--number needs a value");
	refuse("--number=11", NULL, "must be -5 to 10");
	refuse("--number=-6", NULL, "must be -5 to 10");
	refuse("--free=101", NULL, "at most 100 is allowed");
	refuse("--number=", NULL, "not a whole number");
	refuse("--choice", "blue", "--choice blue");
	refuse("--choice=", NULL, "not one of");
	refuse("--choice=re", NULL, "not one of");
	refuse("--long-word=", NULL, "not empty");
	refuse("--cpu=", NULL, "not a CPU list");
	refuse("--cpu", "3-1", "3-1");
	refuse("--flag=1", NULL, "--flag takes no value");
	refuse("--numbe=1", NULL, "unknown option --numbe;");
	refuse("--numbers=1", NULL, "unknown option --numbers;");
	refuse("--Number=1", NULL, "unknown option");
	refuse("--", NULL, "is not an option");
	refuse("--=5", NULL, "unknown option");
	refuse("-n", "1", "unknown option -n");
	refuse("", NULL, "'' is not an option");
	refuse("stray", NULL, "'stray' is not an option");
}

static void hostile_text_makes_one_valid_line(void **state)
{
	static char huge[100000];
	static const char *const wrong[] = {"--number=\"}\n{", "--\xff\xfe",	  "--number=\xed\xa0\x80",
					    "--%s%n%s=1",      "--number=%n%s%s", "\x1b[2J"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		refuse(wrong[i], NULL, "");
	memset(huge, '9', sizeof(huge) - 1);
	refuse("--number", huge, "not a whole number");
	refuse("--cpu", huge, "");
	refuse(huge, NULL, "");
	memcpy(huge, "--", 2);
	refuse(huge, "1", "unknown option");
}

static void numbers_are_whole_decimal_and_fit(void **state)
{
	static const char *const wrong[] = {"",
					    "-",
					    "+1",
					    " 1",
					    "1 ",
					    "0x1",
					    "1e3",
					    "1.0",
					    "--1",
					    "9223372036854775808",
					    "-9223372036854775809",
					    "1\n",
					    "a",
					    "\t1",
					    "1_000"};
	int64_t value = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (options_int(wrong[i], &value))
			fail_msg("'%s' was taken", wrong[i]);
	}
	assert_int_equal(value, 42);
	assert_true(options_int("9223372036854775807", &value) && value == INT64_MAX);
	assert_true(options_int("-9223372036854775808", &value) && value == INT64_MIN);
	assert_true(options_int("-0", &value) && value == 0);
	assert_true(options_int("010", &value) && value == 10);
}

static void help_names_every_option(void **state)
{
	char *said;
	int status = parse(&said, "--number=1", "--help", NULL);

	(void)state;
	assert_int_equal(status, -1);
	for (const struct option_entry *option = table; option->name; option++)
		assert_non_null(strstr(said, option->name));
	assert_non_null(strstr(said, "not of red; only with --choice green\n"));
	assert_non_null(strstr(said, "a colour: red|green (red)\n"));
	assert_non_null(strstr(said, "a number (1)\n"));
	assert_non_null(strstr(said, "a word\n"));
	free(said);
}

static void parameters_hold_every_option(void **state)
{
	struct json j;
	char *said, *end;

	(void)state;
	accept("--number=3", "--choice=green", "--cpu=0-2");
	capture_begin();
	json_start(&j, stdout);
	options_json(table, &j);
	said = capture_end();
	end = strchr(said, ':');
	assert_non_null(end);
	assert_true(check_json(end + 1));
	assert_string_equal(
		said,
		"\"parameters\":{\"number\":3,\"free\":0,\"choice\":\"green\",\"long_word\":null,\"cpu\":\"0-2\",\"flag\":false,\"only_green\":false}");
	free(said);
}

static void operands_begin_where_options_end(void **state)
{
	char *argv[] = {"verb", "--flag", "--long-word=a=b", "--number", "5", "--", "--flag", NULL};
	bool dashes;
	int rest;

	(void)state;
	assert_int_equal(options_parse_operands(table, " OPERANDS", 7, argv, &rest, &dashes), 0);
	assert_true(flag && dashes && number == 5 && rest == 6);
	assert_string_equal(word, "a=b");
	argv[1] = "-"; /* an operand, for programs that read standard input */
	assert_int_equal(options_parse_operands(table, " OPERANDS", 7, argv, &rest, &dashes), 0);
	assert_true(!dashes && rest == 1);
}

static void an_option_exists_only_with_its_choice(void **state)
{
	(void)state;
	accept("--only-green", "--choice", "green");
	assert_true(only_green);
	accept("--choice=green", "--only-green", NULL);
	refuse("--choice=red", "--only-green", "--only-green exists only with --choice green");
	refuse("--only-green", "--choice=red", "--only-green exists only with --choice green");
}

/* The object `parameters`, to be freed. */
static char *parameters(const struct option_entry *of)
{
	struct json j;

	capture_begin();
	json_start(&j, stdout);
	options_json(of, &j);
	return capture_end();
}

static void tables_are_shared(void **state)
{
	char *said;

	(void)state;
	assert_int_equal(parse_by(sharing, &said, "--other=4", "--choice=green", "--number=2"), 0);
	free(said);
	assert_true(number == 2 && other_number == 4);
	said = parameters(sharing);
	assert_string_equal(said,
			    "\"parameters\":{\"choice\":\"green\",\"number\":2,\"second\":2,\"other\":4}");
	free(said);
	assert_int_equal(parse_by(sharing, &said, "--other=2", NULL, NULL), STATUS_USAGE);
	assert_non_null(strstr(said, "must be 3 to 10"));
	free(said);
	choice = 0;
	said = parameters(sharing);
	assert_string_equal(said, "\"parameters\":{\"choice\":\"red\",\"number\":2,\"second\":2}");
	free(said);
	assert_int_equal(parse_by(sharing, &said, "--help", NULL, NULL), -1);
	assert_non_null(strstr(said, "--second               a number (2)\n"));
	assert_non_null(strstr(said, "--other                another (4); only with --choice green\n"));
	free(said);
}

static void a_verb_may_have_no_options(void **state)
{
	char *argv[] = {"verb", "word", NULL}, *said;
	bool dashes;
	int rest;

	(void)state;
	assert_int_equal(options_parse_operands(NULL, " WORD", 2, argv, &rest, &dashes), 0);
	assert_int_equal(rest, 1);
	assert_int_equal(parse_by(NULL, &said, "--help", NULL, NULL), -1);
	assert_string_equal(said, "usage: rtgauge-engine verb\n");
	free(said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_kind_is_read_in_both_forms, clear),
		cmocka_unit_test_setup(what_is_wrong_is_named, clear),
		cmocka_unit_test_setup(hostile_text_makes_one_valid_line, clear),
		cmocka_unit_test(numbers_are_whole_decimal_and_fit),
		cmocka_unit_test_setup(help_names_every_option, clear),
		cmocka_unit_test_setup(parameters_hold_every_option, clear),
		cmocka_unit_test_setup(operands_begin_where_options_end, clear),
		cmocka_unit_test_setup(an_option_exists_only_with_its_choice, clear),
		cmocka_unit_test_setup(tables_are_shared, clear),
		cmocka_unit_test(a_verb_may_have_no_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
