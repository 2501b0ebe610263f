/* SPDX-License-Identifier: MIT */
/* Shared by the tests of the measuring part: a JSON checker, fields of a line, standard output into a file,
 * random numbers. */
#ifndef RTGAUGE_CHECK_H
#define RTGAUGE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the text is one JSON value (RFC 8259) and nothing else. */
bool check_json(const char *text);

/* Returns the whole number after "key": in a line; the test fails if there is none. */
int64_t field_int(const char *line, const char *key);
double field_real(const char *line, const char *key);

/* Whether the line has "key":value, exactly as given. */
bool field_is(const char *line, const char *key, const char *value);

/* Reads a number in Base64 VLQ; *text moves behind it. */
int64_t read_vlq(const char **text);

/* Sends standard output into a file until capture_end, which returns its text (to be freed). */
void capture_begin(void);
char *capture_end(void);

/* xorshift64*: the same numbers on every machine. */
uint64_t next_random(uint64_t *state);

#endif
