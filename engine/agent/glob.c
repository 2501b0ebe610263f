// SPDX-License-Identifier: MIT
#include "agent/glob.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int add(struct glob_paths *paths, const char *path)
{
	if (paths->count == paths->room) {
		size_t room = paths->room ? paths->room * 2 : 64;
		char **list = realloc(paths->list, room * sizeof(*list));

		if (!list)
			return ENOMEM;
		paths->list = list;
		paths->room = room;
	}
	paths->list[paths->count] = strdup(path);
	return paths->list[paths->count++] ? 0 : ENOMEM;
}

/*
 * `done` is the part of the path that was already found; `rest` is the pattern after it. The recursion is
 * as deep as the pattern has parts.
 */
static int walk(const char *done, const char *rest, struct glob_paths *paths)
{
	size_t slashes = strspn(rest, "/"), len = strcspn(rest + slashes, "/");
	char *part = strndup(rest + slashes, len), *base = NULL, *next = NULL;
	bool last = !rest[slashes + len];
	struct stat st;
	struct dirent *name;
	int error = 0;
	DIR *dir;

	if (!part || asprintf(&base, "%s%.*s", done, (int)slashes, rest) < 0) {
		free(part);
		return ENOMEM;
	}
	/* A part without a pattern, or an empty part after a last slash, needs no listing. The directory
	 * may not be readable. */
	if (!strpbrk(part, "*?[\\")) {
		if (asprintf(&next, "%s%s", base, part) < 0)
			error = ENOMEM;
		else if (last && !lstat(next, &st))
			error = add(paths, next);
		else if (!last)
			error = walk(next, rest + slashes + len, paths);
		goto out;
	}
	dir = opendir(*base ? base : ".");
	while (dir && !error && (name = readdir(dir))) {
		if (fnmatch(part, name->d_name, FNM_PERIOD))
			continue;
		if (asprintf(&next, "%s%s", base, name->d_name) < 0)
			error = ENOMEM;
		else if (last)
			error = add(paths, next);
		else if (!stat(next, &st) && S_ISDIR(st.st_mode))
			error = walk(next, rest + slashes + len, paths);
		free(next);
		next = NULL;
	}
	if (dir)
		closedir(dir);
out:
	free(next);
	free(base);
	free(part);
	return error;
}

int glob_expand(const char *pattern, struct glob_paths *paths)
{
	size_t before = paths->count;
	int error = strpbrk(pattern, "*?[\\") ? walk("", pattern, paths) : 0;

	if (!error && paths->count == before)
		error = add(paths, pattern);
	return error;
}

void glob_paths_free(struct glob_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->list[i]);
	free(paths->list);
	*paths = (struct glob_paths){0};
}
