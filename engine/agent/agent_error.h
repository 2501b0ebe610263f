/* SPDX-License-Identifier: MIT */
/* How the agent says what went wrong: a function gives 0 or an errno, or one of these, which Linux has no
 * number for. It becomes a name only in what is printed. */
#ifndef RTGAUGE_AGENT_ERROR_H
#define RTGAUGE_AGENT_ERROR_H

/* Above every errno of Linux. */
enum agent_error {
	AGENT_ALIVE = 4096, /* a program could not be ended */
	AGENT_DIFFERS,	    /* a setting was written and reads otherwise */
	AGENT_IN_USE,	    /* a program that could not be ended may be using the module */
	AGENT_MULTI_LINE,   /* a kernel file of several lines, which cannot be written back */
};

/* The name of an errno ("EACCES") or of one of these ("multi-line"); NULL for 0. */
const char *agent_errname(int error);

#endif
