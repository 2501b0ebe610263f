/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_RESTORE_H
#define RTGAUGE_RESTORE_H

#include <stdbool.h>
#include <stdio.h>

struct restore_wish {
	const char *run; /* what this run set; NULL: none */
	bool stale;	 /* what was set for owners that live no more */
	bool held;	 /* what is held on purpose too: of `run`, or all where that is NULL */
};

/*
 * Puts settings back, the newest first, and writes a line an entry and the last line to `out`.
 * Returns 0, or STATUS_CANNOT where something could not be put back or the journal could not be read.
 */
int restore_settings(const char *dir, const struct restore_wish *wish, FILE *out);

#endif
