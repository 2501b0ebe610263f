// SPDX-License-Identifier: MIT
#include "base/json.h"

#include <math.h>
#include <string.h>

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void json_start(struct json *j, FILE *out)
{
	j->out = out;
	j->comma = false;
}

size_t json_utf8(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t need;
	uint32_t code, least;

	if (!len)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] < 0xe0) {
		need = 2;
		code = s[0] & 0x1f;
		least = 0x80;
	} else if (s[0] >= 0xe0 && s[0] < 0xf0) {
		need = 3;
		code = s[0] & 0x0f;
		least = 0x800;
	} else if (s[0] >= 0xf0 && s[0] < 0xf5) {
		need = 4;
		code = s[0] & 0x07;
		least = 0x10000;
	} else {
		return 0;
	}
	if (len < need)
		return 0;
	for (size_t i = 1; i < need; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return need;
}

static void write_text(FILE *out, const char *text, size_t len)
{
	putc('"', out);
	while (len) {
		size_t n = json_utf8(text, len);
		unsigned char c = (unsigned char)*text;

		if (!n) {
			fputs("\\ufffd", out);
			n = 1;
		} else if (n > 1) {
			fwrite(text, 1, n, out);
		} else if (c == '"' || c == '\\') {
			putc('\\', out);
			putc(c, out);
		} else if (c == '\n') {
			fputs("\\n", out);
		} else if (c < 0x20 || c == 0x7f) {
			fprintf(out, "\\u%04x", c);
		} else {
			putc(c, out);
		}
		text += n;
		len -= n;
	}
	putc('"', out);
}

static void begin(struct json *j, const char *key)
{
	if (j->comma)
		putc(',', j->out);
	if (key) {
		write_text(j->out, key, strlen(key));
		putc(':', j->out);
	}
	j->comma = true;
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	putc(bracket, j->out);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	putc(bracket, j->out);
	j->comma = true;
}

void json_int(struct json *j, const char *key, int64_t value)
{
	begin(j, key);
	fprintf(j->out, "%lld", (long long)value);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	fprintf(j->out, "%llu", (unsigned long long)value);
}

void json_real(struct json *j, const char *key, double value)
{
	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	begin(j, key);
	fprintf(j->out, "%.17g", value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	fputs("null", j->out);
}

void json_strn(struct json *j, const char *key, const char *text, size_t len)
{
	begin(j, key);
	write_text(j->out, text, len);
}

void json_vlq_open(struct json *j, const char *key)
{
	begin(j, key);
	putc('"', j->out);
}

/* The lowest bit is the sign. Each digit has five bits, the lowest first; its sixth says that more follow. */
void json_vlq(struct json *j, int64_t value)
{
	uint64_t rest = value < 0 ? (uint64_t)-value << 1 | 1 : (uint64_t)value << 1;

	for (; rest > 31; rest >>= 5)
		putc(base64_digits[32 | (rest & 31)], j->out);
	putc(base64_digits[rest], j->out);
}

void json_vlq_close(struct json *j)
{
	putc('"', j->out);
}

void json_base64(struct json *j, const char *key, const unsigned char *bytes, size_t len)
{
	begin(j, key);
	putc('"', j->out);
	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t bits = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
				(left > 2 ? bytes[i + 2] : 0);

		putc(base64_digits[bits >> 18], j->out);
		putc(base64_digits[bits >> 12 & 63], j->out);
		putc(left > 1 ? base64_digits[bits >> 6 & 63] : '=', j->out);
		putc(left > 2 ? base64_digits[bits & 63] : '=', j->out);
	}
	putc('"', j->out);
}

void json_str(struct json *j, const char *key, const char *text)
{
	if (text)
		json_strn(j, key, text, strlen(text));
	else
		json_null(j, key);
}

bool json_line(struct json *j)
{
	j->comma = false;
	putc('\n', j->out);
	return !fflush(j->out) && !ferror(j->out);
}
