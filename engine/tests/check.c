// SPDX-License-Identifier: MIT
#include "tests/check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "tests/cm.h"

static const char *value_end(const char *s);

static const char *digits_end(const char *s)
{
	if (!isdigit((unsigned char)*s))
		return NULL;
	while (isdigit((unsigned char)*s))
		s++;
	return s;
}

static const char *number_end(const char *s)
{
	if (*s == '-')
		s++;
	if (*s == '0')
		s++;
	else
		s = digits_end(s);
	if (s && *s == '.')
		s = digits_end(s + 1);
	if (s && (*s == 'e' || *s == 'E')) {
		s++;
		if (*s == '+' || *s == '-')
			s++;
		s = digits_end(s);
	}
	return s;
}

static const char *text_end(const char *s)
{
	if (*s++ != '"')
		return NULL;
	while (*s != '"') {
		if ((unsigned char)*s < 0x20)
			return NULL;
		if (*s != '\\') {
			size_t n = json_utf8(s, strlen(s));

			if (!n)
				return NULL;
			s += n;
			continue;
		}
		s++;
		if (*s == 'u') {
			for (int i = 1; i <= 4; i++) {
				if (!isxdigit((unsigned char)s[i]))
					return NULL;
			}
			s += 4;
		} else if (!*s || !strchr("\"\\/bfnrt", *s)) {
			return NULL;
		}
		s++;
	}
	return s + 1;
}

static const char *members_end(const char *s, char close, bool keys)
{
	if (*s == close)
		return s + 1;
	for (;;) {
		if (keys) {
			s = text_end(s);
			if (!s || *s++ != ':')
				return NULL;
		}
		s = value_end(s);
		if (!s)
			return NULL;
		if (*s == close)
			return s + 1;
		if (*s++ != ',')
			return NULL;
	}
}

static const char *value_end(const char *s)
{
	static const char *const words[] = {"true", "false", "null"};

	if (*s == '{')
		return members_end(s + 1, '}', true);
	if (*s == '[')
		return members_end(s + 1, ']', false);
	if (*s == '"')
		return text_end(s);
	for (size_t i = 0; i < 3; i++) {
		if (!strncmp(s, words[i], strlen(words[i])))
			return s + strlen(words[i]);
	}
	return number_end(s);
}

bool check_json(const char *text)
{
	const char *end = value_end(text);

	return end && !*end;
}

static const char *field(const char *line, const char *key)
{
	char quoted[64];
	const char *at;

	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(line, quoted);
	return at ? at + strlen(quoted) : NULL;
}

int64_t field_int(const char *line, const char *key)
{
	const char *at = field(line, key);
	char *end;
	int64_t value;

	if (!at)
		fail_msg("no %s in %.200s", key, line);
	value = strtoll(at, &end, 10);
	if (end == at)
		fail_msg("%s is no number in %.200s", key, line);
	return value;
}

double field_real(const char *line, const char *key)
{
	const char *at = field(line, key);

	if (!at)
		fail_msg("no %s in %.200s", key, line);
	return strtod(at, NULL);
}

bool field_is(const char *line, const char *key, const char *value)
{
	const char *at = field(line, key);

	return at && !strncmp(at, value, strlen(value)) && strchr(",}]", at[strlen(value)]);
}

int64_t read_vlq(const char **text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	int64_t value = 0, digit;
	int shift = 0;

	do {
		const char *at = strchr(digits, **text);

		assert_true(**text && at && shift < 60);
		digit = at - digits;
		value |= (digit & 31) << shift;
		shift += 5;
		(*text)++;
	} while (digit & 32);
	return value & 1 ? -(value >> 1) : value >> 1;
}

static int real_stdout = -1;
static FILE *captured;

void capture_begin(void)
{
	fflush(stdout);
	captured = tmpfile();
	assert_non_null(captured);
	real_stdout = dup(STDOUT_FILENO);
	assert_true(real_stdout >= 0 && dup2(fileno(captured), STDOUT_FILENO) >= 0);
}

char *capture_end(void)
{
	char *text;
	long size;

	fflush(stdout);
	assert_true(dup2(real_stdout, STDOUT_FILENO) >= 0);
	close(real_stdout);
	assert_int_equal(fseek(captured, 0, SEEK_END), 0);
	size = ftell(captured);
	assert_true(size >= 0);
	rewind(captured);
	text = calloc((size_t)size + 1, 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)size, captured), size);
	fclose(captured);
	return text;
}

uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}
