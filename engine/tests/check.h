/* SPDX-License-Identifier: MIT */
/* What the tests of the measuring part share: a JSON checker, fields of a line, standard output into a file,
 * numbers at random. */
#ifndef RTGAUGE_CHECK_H
#define RTGAUGE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the text is one JSON value (RFC 8259) and nothing else. */
bool check_json(const char *text);

/* The whole number behind "key": in a line; fails the test where there is none. */
int64_t field_int(const char *line, const char *key);
double field_real(const char *line, const char *key);

/* Whether the line has "key":value, value as it is there. */
bool field_is(const char *line, const char *key, const char *value);

/* A number in Base64 VLQ; *text moves behind it. */
int64_t read_vlq(const char **text);

/* Sends standard output into a file until capture_end, which gives its text (to be freed). */
void capture_begin(void);
char *capture_end(void);

/* xorshift64*: the same numbers on every machine. */
uint64_t next_random(uint64_t *state);

#endif
