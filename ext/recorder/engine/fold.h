/* SPDX-License-Identifier: MIT */
/* Folds the windows of a session that is over: they take most of the spool (ext/recorder/README.md). */
#ifndef RTGAUGE_FOLD_H
#define RTGAUGE_FOLD_H

#include <stddef.h>

/*
 * Returns the lines of a session with one line `folded` for all windows of a series; malloc'ed, with its
 * length in *len. The lines `clocks` between the windows go, except those that show that the machine slept or
 * that somebody set the wall clock. All other lines stay, and damaged ones, too. Changes the text, which has
 * a NUL after its last byte. Returns NULL if there is nothing to fold, or no memory.
 */
char *fold_session(char *text, size_t *len);

#endif
