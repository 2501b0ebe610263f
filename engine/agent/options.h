/* SPDX-License-Identifier: MIT */
/* The two options that verbs with settings have: of which run, and where its journal is. */
#ifndef RTGAUGE_AGENT_OPTIONS_H
#define RTGAUGE_AGENT_OPTIONS_H

#include "base/options.h"

#define AGENT_OPTION_RUN(run)                                                                                \
	{                                                                                                    \
		.name = "run", .kind = OPTION_TEXT, .value = (run),                                          \
		.help = "ID of the run: letters, digits and ._-:@+"                                          \
	}
#define AGENT_OPTION_JOURNAL(folder)                                                                         \
	{                                                                                                    \
		.name = "journal", .kind = OPTION_TEXT, .value = (folder), .help = "folder of the journal",  \
		.may_be_empty = true                                                                         \
	}

/* 0, or the exit status after an `error` line: there is no ID, or it is none. */
int agent_check_run(const char *run);

/* The journal's folder (malloc'ed): the one given, else the default of this user. 0, or the exit status after
 * an `error` line. */
int agent_find_journal(const char *given, char **folder);

#endif
