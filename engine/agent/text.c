// SPDX-License-Identifier: MIT
#include "agent/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

bool text_is_id(const char *text)
{
	size_t len = strlen(text);

	return len >= 1 && len <= 128 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:@+") == len;
}

bool text_is_utf8(const char *text, size_t len)
{
	while (len) {
		size_t n = json_utf8(text, len);

		if (!n)
			return false;
		text += n;
		len -= n;
	}
	return true;
}

/* C0 and C1 control characters, and characters that reorder or hide text (U+061C, U+200B..F, U+2028..E,
 * U+2060..F, U+FEFF). */
static bool commands_a_terminal(const unsigned char *c)
{
	if (c[0] < 0x20 || c[0] == 0x7f)
		return true;
	if (c[0] == 0xc2)
		return c[1] < 0xa0;
	if (c[0] == 0xd8)
		return c[1] == 0x9c;
	if (c[0] == 0xe2 && c[1] == 0x80)
		return (c[2] >= 0x8b && c[2] <= 0x8f) || (c[2] >= 0xa8 && c[2] <= 0xae);
	if (c[0] == 0xe2 && c[1] == 0x81)
		return c[2] >= 0xa0 && c[2] <= 0xaf;
	return c[0] == 0xef && c[1] == 0xbb && c[2] == 0xbf;
}

bool text_is_plain(const char *text, size_t max_len)
{
	size_t len = strlen(text);

	if (len > max_len || !text_is_utf8(text, len))
		return false;
	for (const char *c = text; *c; c += json_utf8(c, len - (size_t)(c - text))) {
		if (commands_a_terminal((const unsigned char *)c))
			return false;
	}
	return true;
}

void scan_literal(struct scan *scan, const char *text)
{
	size_t len = strlen(text);

	if (scan->wrong || strncmp(scan->at, text, len))
		scan->wrong = true;
	else
		scan->at += len;
}

int64_t scan_int(struct scan *scan, int64_t min, int64_t max)
{
	int64_t value = 0;
	size_t digits = 0;

	while (!scan->wrong && digits < 19 && scan->at[digits] >= '0' && scan->at[digits] <= '9') {
		int digit = scan->at[digits++] - '0';

		if (value > (INT64_MAX - digit) / 10) {
			scan->wrong = true;
			break;
		}
		value = value * 10 + digit;
	}
	if (!digits || (digits > 1 && scan->at[0] == '0') || value < min || value > max)
		scan->wrong = true;
	if (scan->wrong)
		return 0;
	scan->at += digits;
	return value;
}

bool scan_bool(struct scan *scan)
{
	bool value = *scan->at == 't';

	scan_literal(scan, value ? "true" : "false");
	return value;
}

/* Returns the character of a \u00XX that json.c has written; 0 for any other text. */
static char control(const char *hex)
{
	static const char digits[] = "0123456789abcdef";
	const char *high, *low;
	int value;

	if (strncmp(hex, "00", 2) || !hex[2] || !hex[3])
		return 0;
	high = strchr(digits, hex[2]);
	low = strchr(digits, hex[3]);
	if (!high || !low)
		return 0;
	value = (int)(high - digits) * 16 + (int)(low - digits);
	return (value < 0x20 && value != '\n') || value == 0x7f ? (char)value : 0;
}

char *scan_text(struct scan *scan)
{
	static char nothing[1];
	char *start, *to;

	nothing[0] = '\0';
	scan_literal(scan, "\"");
	start = to = scan->at;
	while (!scan->wrong) {
		char *c = scan->at;
		size_t n = json_utf8(c, strnlen(c, 4));

		if (*c == '"') {
			scan->at++;
			*to = '\0';
			return start;
		}
		if (!n || (unsigned char)*c < 0x20 || *c == 0x7f) {
			scan->wrong = true;
		} else if (*c != '\\') {
			memmove(to, c, n);
			to += n;
			scan->at += n;
		} else if (c[1] == '"' || c[1] == '\\' || c[1] == 'n') {
			*to++ = c[1] == 'n' ? '\n' : c[1];
			scan->at += 2;
		} else if (c[1] == 'u' && control(c + 2)) {
			*to++ = control(c + 2);
			scan->at += 6;
		} else {
			scan->wrong = true;
		}
	}
	return nothing;
}
