/* SPDX-License-Identifier: MIT */
/* Expands patterns with * ? [ ] to paths. glob(3) does this too, but adds a quarter of a megabyte of user
 * databases to a static program. */
#ifndef RTGAUGE_GLOB_H
#define RTGAUGE_GLOB_H

#include <stddef.h>

struct glob_paths {
	char **list;
	size_t count, room;
};

/*
 * Adds the matches of a pattern as a shell would (a leading dot must be in the pattern; \ quotes), or the
 * pattern itself if nothing matches or it has no wildcard. Returns 0 or ENOMEM.
 */
int glob_expand(const char *pattern, struct glob_paths *paths);

void glob_paths_free(struct glob_paths *paths);

#endif
