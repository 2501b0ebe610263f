/* SPDX-License-Identifier: MIT */
/* Errors of the agent. Functions return 0, an errno, or one of these, for which Linux has no number. The
 * output shows them by name. */
#ifndef RTGAUGE_AGENT_ERROR_H
#define RTGAUGE_AGENT_ERROR_H

/* Above every errno of Linux. */
enum agent_error {
	AGENT_ALIVE = 4096, /* a program could not be ended */
	AGENT_DIFFERS,	    /* a setting was written but reads differently */
	AGENT_IN_USE,	    /* a program that could not be ended may still use the module */
	AGENT_MULTI_LINE,   /* the kernel file has several lines, so it cannot be written back */
};

/* Returns the name of an errno ("EACCES") or of one of these ("multi-line"); NULL for 0. */
const char *agent_errname(int error);

#endif
