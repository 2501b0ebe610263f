/* SPDX-License-Identifier: MIT */
/* Patterns with * ? [ ] to paths. glob(3) does this too, and brings a quarter of a megabyte of user databases
 * into a static program. */
#ifndef RTGAUGE_GLOB_H
#define RTGAUGE_GLOB_H

#include <stddef.h>

struct glob_paths {
	char **list;
	size_t count, room;
};

/*
 * Adds what the pattern matches, as a shell would (a leading dot only where the pattern has it; \ takes the
 * meaning away); the pattern itself where it matches nothing or is no pattern. Returns 0 or ENOMEM.
 */
int glob_expand(const char *pattern, struct glob_paths *paths);

void glob_paths_free(struct glob_paths *paths);

#endif
