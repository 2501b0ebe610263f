/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_RESTORE_H
#define RTGAUGE_RESTORE_H

#include <stdbool.h>
#include <stdio.h>

struct restore_wish {
	const char *run; /* settings of this run; NULL: none */
	bool stale;	 /* settings whose owners no longer live */
	bool held;	 /* also settings that are held on purpose: by `run`, or all if `run` is NULL */
};

/*
 * Restores settings, the newest first. Writes a line for each entry, and a last line, to `out`. Returns 0,
 * or STATUS_CANNOT if a setting could not be restored or the journal could not be read.
 */
int restore_settings(const char *dir, const struct restore_wish *wish, FILE *out);

#endif
