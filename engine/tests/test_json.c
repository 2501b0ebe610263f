// SPDX-License-Identifier: MIT
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/check.h"
#include "tests/cm.h"

static char *text;
static size_t text_size;
static struct json j;

static void begin(void)
{
	json_start(&j, open_memstream(&text, &text_size));
	assert_non_null(j.out);
}

static void expect(const char *expected)
{
	fclose(j.out);
	assert_string_equal(text, expected);
	free(text);
}

static void the_checker_knows_json(void **state)
{
	static const char *const right[] = {
		"0",	"-0.5e+3", "[]",	  "{}", "[1,[2,{\"a\":null}]]", "\"\\u00e9\\n\"",
		"true", "1E9",	   "\"\xc3\xa4\""};
	static const char *const wrong[] = {"",		  "01",	      "1.",	     ".5",    "+1",
					    "[1,]",	  "{,}",      "{\"a\"}",     "[1 2]", "\"\n\"",
					    "\"\\x\"",	  "\"a",      "nul",	     "1e",    "NaN",
					    "{\"a\":1}}", "\"\xff\"", "\"\\u12g4\"", "-",     "{1:2}"};

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		assert_true(check_json(right[i]));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(check_json(wrong[i]));
}

static void values_stand_where_they_belong(void **state)
{
	(void)state;
	begin();
	json_open(&j, NULL, '{');
	json_int(&j, "a", INT64_MIN);
	json_uint(&j, "b", UINT64_MAX);
	json_open(&j, "c", '[');
	json_close(&j, ']');
	json_open(&j, "d", '[');
	json_int(&j, NULL, 1);
	json_open(&j, NULL, '[');
	json_bool(&j, NULL, true);
	json_bool(&j, NULL, false);
	json_close(&j, ']');
	json_null(&j, NULL);
	json_close(&j, ']');
	json_str(&j, "e", NULL);
	json_str(&j, "f", "");
	json_strn(&j, "g", "abc", 2);
	json_close(&j, '}');
	expect("{\"a\":-9223372036854775808,\"b\":18446744073709551615,\"c\":[],\"d\":[1,[true,false],null],\"e\":null,\"f\":\"\",\"g\":\"ab\"}");
}

static void numbers_in_base64_vlq_come_back(void **state)
{
	static const int64_t numbers[] = {
		0, 1, -1, 15, 16, -16, 1300, 12100, -12100, UINT32_MAX, INT64_C(1) << 55};
	const char *at;

	(void)state;
	begin();
	json_vlq_open(&j, NULL);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_vlq(&j, numbers[i]);
	json_vlq_close(&j);
	fclose(j.out);
	assert_true(check_json(text));
	assert_true(!strncmp(text, "\"ACDegBhB", 9)); /* as source maps write them */
	at = text + 1;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_true(read_vlq(&at) == numbers[i]);
	assert_string_equal(at, "\"");
	free(text);
}

static void a_real_comes_back_and_what_is_no_number_is_null(void **state)
{
	static const double reals[] = {0, 0.1, -1.5e300, 5e-324, 1.7976931348623157e308, 144277975668.94873};

	(void)state;
	for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++) {
		begin();
		json_real(&j, NULL, reals[i]);
		fclose(j.out);
		assert_true(check_json(text));
		assert_true(strtod(text, NULL) == reals[i]);
		free(text);
	}
	begin();
	json_open(&j, NULL, '[');
	json_real(&j, NULL, (double)NAN);
	json_real(&j, NULL, (double)INFINITY);
	json_real(&j, NULL, (double)-INFINITY);
	json_close(&j, ']');
	expect("[null,null,null]");
}

static void text_is_escaped(void **state)
{
	(void)state;
	begin();
	json_str(&j, NULL, "a\"b\\c\nd\te\x01\x7f/\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
	expect("\"a\\\"b\\\\c\\nd\\u0009e\\u0001\\u007f/\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
	begin();
	json_strn(&j, NULL, "a\0b", 3);
	expect("\"a\\u0000b\"");
}

static void wrong_bytes_are_replaced_one_by_one(void **state)
{
	static const char *const wrong[] = {
		"\x80",	    "\xff",	    "\xc0\xaf",		"\xc3",
		"\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
		"\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char expected[64] = "\"<", word[16];

		snprintf(word, sizeof(word), "<%s>", wrong[i]);
		begin();
		json_str(&j, NULL, word);
		for (size_t b = 0; b < strlen(wrong[i]); b++)
			strcat(expected, "\\ufffd");
		strcat(expected, ">\"");
		expect(expected);
	}
}

static void any_bytes_make_valid_json(void **state)
{
	uint64_t random = 3;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char bytes[24];
		size_t len = next_random(&random) % sizeof(bytes);

		for (size_t i = 0; i < len; i++)
			bytes[i] = (char)(next_random(&random) >> 17);
		begin();
		json_open(&j, NULL, '{');
		json_strn(&j, "k", bytes, len);
		json_close(&j, '}');
		fclose(j.out);
		assert_true(check_json(text));
		free(text);
	}
}

static void a_line_ends_and_the_next_begins_anew(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 2; i++) {
		json_open(&j, NULL, '{');
		json_int(&j, "a", i);
		json_close(&j, '}');
		assert_true(json_line(&j));
	}
	expect("{\"a\":0}\n{\"a\":1}\n");
}

static void a_full_disk_is_seen(void **state)
{
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	json_start(&j, full);
	json_int(&j, NULL, 1);
	assert_false(json_line(&j));
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_checker_knows_json),
		cmocka_unit_test(values_stand_where_they_belong),
		cmocka_unit_test(numbers_in_base64_vlq_come_back),
		cmocka_unit_test(a_real_comes_back_and_what_is_no_number_is_null),
		cmocka_unit_test(text_is_escaped),
		cmocka_unit_test(wrong_bytes_are_replaced_one_by_one),
		cmocka_unit_test(any_bytes_make_valid_json),
		cmocka_unit_test(a_line_ends_and_the_next_begins_anew),
		cmocka_unit_test(a_full_disk_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
