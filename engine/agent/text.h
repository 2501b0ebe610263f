/* SPDX-License-Identifier: MIT */
/* Checks texts from outside, and reads JSON lines that the engine wrote itself. */
#ifndef RTGAUGE_TEXT_H
#define RTGAUGE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Accepts 1 to 128 letters, digits and . _ - : @ +, which need no escaping anywhere. */
bool text_is_id(const char *text);

/* Accepts UTF-8 without control characters, of at most `max_len` bytes. */
bool text_is_plain(const char *text, size_t max_len);

/* Returns whether all of the text is valid UTF-8. */
bool text_is_utf8(const char *text, size_t len);

/* Parses JSON lines exactly as base/json.c writes them. Any other text fails. */
struct scan {
	char *at;   /* the next character of a text that ends with NUL */
	bool wrong; /* a mismatch was found, so the position no longer moves */
};

void scan_literal(struct scan *scan, const char *text);
int64_t scan_int(struct scan *scan, int64_t min, int64_t max);
bool scan_bool(struct scan *scan);

/* Parses a quoted text of valid UTF-8 without NUL, and unescapes it in place. Returns "" if it is invalid. */
char *scan_text(struct scan *scan);

#endif
