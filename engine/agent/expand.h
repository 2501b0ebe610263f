/* SPDX-License-Identifier: MIT */
/* Patterns with * ? [ ] to paths. glob(3) does this too, and brings a quarter of a megabyte of user databases
 * into a static program. */
#ifndef RTGAUGE_EXPAND_H
#define RTGAUGE_EXPAND_H

#include <stddef.h>

struct paths {
	char **list;
	size_t count, room;
};

/*
 * Adds what the pattern matches, as a shell would (a leading dot only where the pattern has it; \ takes the
 * meaning away); the pattern itself where it matches nothing or is no pattern. Returns 0 or ENOMEM.
 */
int expand(const char *pattern, struct paths *paths);

void paths_free(struct paths *paths);

#endif
