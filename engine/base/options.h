/* SPDX-License-Identifier: MIT */
/* A verb's options: one table reads the command line, prints the help and writes `parameters` into the
 * stream. */
#ifndef RTGAUGE_OPTIONS_H
#define RTGAUGE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

enum option_kind {
	OPTION_INT,    /* int64_t, from min to max */
	OPTION_CHOICE, /* int, index into choices */
	OPTION_TEXT,   /* const char * */
	OPTION_CPUS,   /* struct cpuset; empty: not given */
	OPTION_FLAG,   /* bool; takes no value */
};

struct option_entry {
	const char *name; /* without the dashes */
	enum option_kind kind;
	bool may_be_empty; /* OPTION_TEXT */
	void *value;
	const char *help;
	int64_t min, max;
	const char *const *choices; /* ends with NULL */
};

/*
 * Reads `--name value` and `--name=value`. Returns 0, or the exit status after it wrote an `error` line
 * (wrong input) or, for --help, the help (then -1: the caller ends with STATUS_OK).
 */
int options_parse(const struct option_entry *table, size_t count, int argc, char **argv);

/*
 * The same for a verb with other words behind its options, which end at the first such word or at `--`.
 * *rest: the index of the first word that is no option; *dashes: a `--` is before it. operands: of these
 * words, for the help.
 */
int options_parse_operands(const struct option_entry *table, size_t count, const char *operands, int argc,
			   char **argv, int *rest, bool *dashes);

/*
 * The value that `--name value` or `--name=value` gives; NULL: it is not given. For a verb whose table
 * depends on one of its options, before options_parse.
 */
const char *options_value(int argc, char **argv, const char *name);

/* A whole decimal number; false where the text is anything else or does not fit. */
bool options_int(const char *text, int64_t *value);

/* Writes the object `parameters` with every option of the table. */
void options_json(const struct option_entry *table, size_t count, struct json *j);

#endif
