/* SPDX-License-Identifier: MIT */
/* The probes and options that a co-kernel lacks, from the tables in rt/NAME/runtime.c. */
#ifndef RTGAUGE_LACKING_H
#define RTGAUGE_LACKING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"
#include "base/verbs.h"

/* An option's choice that the co-kernel lacks or, with choice NULL, an option of text. verb NULL: of every
 * probe. A table ends with option NULL. */
struct lacking {
	const char *verb, *option, *choice;
	const char *written; /* what people write, if it differs from the option and its choice */
};

/* Returns 0, or the exit status after an `error` line if the verb is not one of these probes, which end
 * with NULL. `name`: the co-kernel's name. */
int lacking_probe(const char *name, const char *const *probes, const struct verb *verb);

/* The same check for the options that were read. */
int lacking_choice(const char *name, const struct lacking *lacking, const char *verb,
		   const struct option_entry *table);

#endif
