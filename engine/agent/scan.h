/* SPDX-License-Identifier: MIT */
/* Reads back JSON lines that the engine wrote itself, byte for byte as base/json.c writes them; nothing else
 * passes. */
#ifndef RTGAUGE_SCAN_H
#define RTGAUGE_SCAN_H

#include <stdbool.h>
#include <stdint.h>

struct scan {
	char *at;   /* what comes next in a text that ends with NUL */
	bool wrong; /* something else stood there; nothing moves from then on */
};

void scan_literal(struct scan *scan, const char *text);
int64_t scan_int(struct scan *scan, int64_t min, int64_t max);
bool scan_bool(struct scan *scan);

/* A quoted text of valid UTF-8 without NUL, unescaped in place; "" where it is wrong. */
char *scan_text(struct scan *scan);

#endif
