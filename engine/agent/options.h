/* SPDX-License-Identifier: MIT */
/* Options of verbs that change settings: the run, and the folder of the journal. */
#ifndef RTGAUGE_AGENT_OPTIONS_H
#define RTGAUGE_AGENT_OPTIONS_H

#include "base/options.h"

/* Tables of one option each; the verb sets the place of the value. */
extern const struct option_entry agent_option_run[], agent_option_journal[];

/* Returns 0, or the exit status after an `error` line if the ID is missing or not valid. */
int agent_check_run(const char *run);

/* Sets the journal's folder (malloc'ed): the given one, else this user's default. Returns 0, or the exit
 * status after an `error` line. */
int agent_find_journal(const char *given, char **folder);

#endif
