/* SPDX-License-Identifier: MIT */
/* Makes and removes control groups of version 1 and 2, and moves tasks between them. */
#ifndef RTGAUGE_CGROUP_H
#define RTGAUGE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns whether the folder is on a file system of control groups. */
bool cgroup_is(const char *dir);

/* Moves a task (0: the calling process) into the group. Returns 0 or an errno. */
int cgroup_put(const char *dir, pid_t task);

struct cgroup_moved {
	size_t moved, refused;
	pid_t last_refused[64]; /* the first task that refused in the last pass */
	int last_errors[64];
};

/* Moves all tasks of a group into another, again until no more arrive. Returns 0 or an errno. */
int cgroup_move_all(const char *from, const char *to, struct cgroup_moved *result);

/* Removes a group, whose tasks move to its parent. Returns 0 or an errno. */
int cgroup_remove(const char *dir);

#endif
