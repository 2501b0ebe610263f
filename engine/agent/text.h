/* SPDX-License-Identifier: MIT */
/* Texts that come from outside: what may pass, and JSON lines that the engine wrote itself. */
#ifndef RTGAUGE_TEXT_H
#define RTGAUGE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 1 to 128 letters, digits and . _ - : @ +, which need no escaping anywhere. */
bool text_is_id(const char *text);

/* UTF-8 without control characters, at most `max_len` bytes. */
bool text_is_plain(const char *text, size_t max_len);

/* Valid UTF-8 throughout. */
bool text_is_utf8(const char *text, size_t len);

/* Reads back JSON lines, byte for byte as base/json.c writes them; nothing else passes. */
struct scan {
	char *at;   /* what comes next in a text that ends with NUL */
	bool wrong; /* something else was there; nothing moves from then on */
};

void scan_literal(struct scan *scan, const char *text);
int64_t scan_int(struct scan *scan, int64_t min, int64_t max);
bool scan_bool(struct scan *scan);

/* A quoted text of valid UTF-8 without NUL, unescaped in place; "" where it is wrong. */
char *scan_text(struct scan *scan);

#endif
