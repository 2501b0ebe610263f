/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON to a stdio stream, value by value. The key is NULL for a member of an array. In text that is
 * not UTF-8, U+FFFD replaces each wrong byte. Not for measuring threads.
 */
#ifndef RTGAUGE_JSON_H
#define RTGAUGE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	bool comma;
};

void json_start(struct json *j, FILE *out);
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_int(struct json *j, const char *key, int64_t value);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_real(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
void json_str(struct json *j, const char *key, const char *text);
/* Writes numbers as a text in Base64 VLQ, like source maps (docs/formats/stream.md); json_vlq adds one. */
void json_vlq_open(struct json *j, const char *key);
void json_vlq(struct json *j, int64_t value);
void json_vlq_close(struct json *j);
/* Writes a text in Base64 (RFC 4648, section 4). */
void json_base64(struct json *j, const char *key, const unsigned char *bytes, size_t len);
void json_strn(struct json *j, const char *key, const char *text, size_t len);

/* Ends the line and flushes it, so that a reader sees only whole lines. Returns false if it could not be
 * written (errno). */
bool json_line(struct json *j);

/* Returns the length of a valid UTF-8 sequence at the start of text; 0 if there is none. */
size_t json_utf8(const char *text, size_t len);

#endif
