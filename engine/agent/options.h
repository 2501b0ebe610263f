/* SPDX-License-Identifier: MIT */
/* The two options that verbs with settings share: the run, and the folder of the journal. */
#ifndef RTGAUGE_AGENT_OPTIONS_H
#define RTGAUGE_AGENT_OPTIONS_H

#include "base/options.h"

/* Tables of one option each; the verb gives the place of the value. */
extern const struct option_entry agent_option_run[], agent_option_journal[];

/* 0, or the exit status after an `error` line: there is no ID, or it is none. */
int agent_check_run(const char *run);

/* The journal's folder (malloc'ed): the one given, else the default of this user. 0, or the exit status after
 * an `error` line. */
int agent_find_journal(const char *given, char **folder);

#endif
