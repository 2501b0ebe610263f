/* SPDX-License-Identifier: MIT */
/* The options of verbs that change settings: the run, and the journal's folder. */
#ifndef RTGAUGE_AGENT_OPTIONS_H
#define RTGAUGE_AGENT_OPTIONS_H

#include "base/options.h"

/* Tables with one option each. The verb sets where the value goes. */
extern const struct option_entry agent_option_run[], agent_option_journal[];

/* Returns 0, or the exit status after an `error` line if the ID is missing or invalid. */
int agent_check_run(const char *run);

/* Sets the journal's folder (malloc'ed) to the given one, or else this user's default. Returns 0, or the
 * exit status after an `error` line. */
int agent_find_journal(const char *given, char **folder);

#endif
