/* SPDX-License-Identifier: MIT */
/* A verb's options. One table reads the command line, prints the help and writes `parameters` into the
 * stream. An entry with neither `name` nor `shared` ends a table. */
#ifndef RTGAUGE_OPTIONS_H
#define RTGAUGE_OPTIONS_H

#include <stdbool.h>
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
	const char *name; /* name without the dashes */
	enum option_kind kind;
	bool may_be_empty; /* OPTION_TEXT */
	void *value;
	const char *help; /* help without the default, which is the value before the options are read */
	int64_t min, max;
	const char *const *choices; /* ends with NULL */
	struct {
		const int *choice; /* the value of an OPTION_CHOICE of the same table; NULL: the option always
				      exists */
		int value;
	} only;				   /* the option exists only if the choice has this value */
	const struct option_entry *shared; /* another table, whose options belong here; what this entry also
				       has (name, value, help, min, choices, only) overrides theirs */
};

/* Walks through a table and the tables that it shares. */
struct options_walk {
	const struct option_entry
		*at[3]; /* positions in the table, in a shared table, and in a table that this one shares */
	int depth;
	struct option_entry option;
};

/* table NULL: it has no options. */
void options_walk_begin(struct options_walk *walk, const struct option_entry *table);

/* Returns the next option, valid until the next call; NULL at the end. */
const struct option_entry *options_next(struct options_walk *walk);

/*
 * Reads `--name value` and `--name=value`. Returns 0, or the exit status after an `error` line, or -1
 * after the help; the caller then ends with STATUS_OK.
 */
int options_parse(const struct option_entry *table, int argc, char **argv);

/*
 * The same for a verb that has other words after its options, which end at the first such word or at `--`.
 * *rest: the index of the first word that is not an option. *dashes: whether `--` comes before it.
 * operands: these words in the help.
 */
int options_parse_operands(const struct option_entry *table, const char *operands, int argc, char **argv,
			   int *rest, bool *dashes);

/* Parses a whole decimal number. Returns false if the text is anything else, or does not fit. */
bool options_int(const char *text, int64_t *value);

/* Writes the object `parameters` with every option that exists with the given choices. */
void options_json(const struct option_entry *table, struct json *j);

#endif
