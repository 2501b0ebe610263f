// SPDX-License-Identifier: MIT
/* The lines that every probe writes; the host's tests check the full schema. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/stream.h"
#include "base/verbs.h"
#include "tests/check.h"
#include "tests/cm.h"

PROBE("b-probe", NULL, "")
static const struct verb a_verb = {.name = "a-verb", .kind = VERB_AGENT};

static int64_t number = 5;
static const struct option_entry table[] = {
	{.name = "a-number", .kind = OPTION_INT, .value = &number, .min = 0, .max = 10, .help = "a number"},
	{0},
};

/* Returns the single captured line without its newline. To be freed. */
static char *one_line(void)
{
	char *text = capture_end();
	size_t len = strlen(text);

	assert_true(len > 1 && text[len - 1] == '\n');
	text[len - 1] = '\0';
	assert_null(strchr(text, '\n'));
	if (!check_json(text))
		fail_msg("not JSON: %s", text);
	return text;
}

static void hello_says_who_speaks(void **state)
{
	struct json j;
	char *line;

	(void)state;
	verb_register(&a_verb);
	capture_begin();
	stream_begin(&j);
	stream_hello(&j, "probe-name", table);
	json_close(&j, '}');
	json_line(&j);
	line = one_line();
	assert_true(field_is(line, "type", "\"hello\""));
	assert_int_equal(field_int(line, "version"), STREAM_VERSION);
	assert_true(field_is(line, "probe", "\"probe-name\""));
	assert_int_equal(field_int(line, "pid"), getpid());
	assert_int_equal(field_int(line, "a_number"), 5);
	assert_non_null(strstr(line, "\"capabilities\":[\"b-probe\",\"a-verb\"]"));
	assert_non_null(strstr(line, "\"boot_id\":\""));
	free(line);
}

static void marks_have_a_severity_and_a_series(void **state)
{
	struct json j;
	char *line;

	(void)state;
	json_start(&j, stdout);
	capture_begin();
	stream_mark(&j, "name", SEVERITY_DOUBTFUL, 3, "%s %d", "\"quoted\"\n", 7);
	line = one_line();
	assert_string_equal(
		line,
		"{\"type\":\"mark\",\"name\":\"name\",\"severity\":\"doubtful\",\"series\":3,\"detail\":\"\\\"quoted\\\"\\n 7\"}");
	free(line);
	capture_begin();
	stream_mark(&j, "name", SEVERITY_INVALID, -1, "x");
	line = one_line();
	assert_true(field_is(line, "series", "null") && field_is(line, "severity", "\"invalid\""));
	free(line);
	capture_begin();
	stream_mark(&j, "name", SEVERITY_NOTE, 0, "%2000d", 1); /* longer than a detail may be */
	line = one_line();
	assert_true(field_is(line, "series", "0") && field_is(line, "severity", "\"note\"") &&
		    strlen(line) < 700);
	free(line);
}

static void the_end_has_a_reason(void **state)
{
	struct json j;
	char *line;

	(void)state;
	json_start(&j, stdout);
	capture_begin();
	stream_end(&j, "duration", STATUS_OK);
	line = one_line();
	assert_string_equal(line, "{\"type\":\"end\",\"reason\":\"duration\",\"status\":0}");
	free(line);
}

static void an_error_is_one_line_and_gives_its_status(void **state)
{
	static char huge[5000];
	char *line;

	(void)state;
	capture_begin();
	assert_int_equal(error_line(STATUS_CANNOT_MEASURE, "clock", "%s", "why\nand what"),
			 STATUS_CANNOT_MEASURE);
	line = one_line();
	assert_string_equal(
		line,
		"{\"type\":\"error\",\"code\":\"clock\",\"message\":\"why\\nand what\",\"detail\":{},\"status\":3}");
	free(line);
	memset(huge, '\xc3', sizeof(huge) - 1);
	capture_begin();
	assert_int_equal(usage_error("%s", huge), STATUS_USAGE);
	free(one_line());
}

static void a_stream_that_takes_no_more_is_seen(void **state)
{
	struct json j;
	int real = dup(STDOUT_FILENO);
	FILE *full = fopen("/dev/full", "w");
	bool before = stream_written(), during;

	(void)state;
	assert_non_null(full);
	assert_true(real >= 0 && dup2(fileno(full), STDOUT_FILENO) >= 0);
	json_start(&j, stdout);
	stream_end(&j, "stopped", 0);
	during = stream_written();
	dup2(real, STDOUT_FILENO);
	close(real);
	fclose(full);
	clearerr(stdout);
	assert_true(before);
	assert_false(during);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_says_who_speaks),
		cmocka_unit_test(marks_have_a_severity_and_a_series),
		cmocka_unit_test(the_end_has_a_reason),
		cmocka_unit_test(an_error_is_one_line_and_gives_its_status),
		cmocka_unit_test(a_stream_that_takes_no_more_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
