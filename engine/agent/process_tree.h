/* SPDX-License-Identifier: MIT */
/*
 * Finds all descendants of a process. Descendants of this process remain so after setsid, because it is
 * their subreaper.
 */
#ifndef RTGAUGE_PROCESS_TREE_H
#define RTGAUGE_PROCESS_TREE_H

#include <stddef.h>
#include <sys/types.h>

/* Finds the living descendants of `root`, without zombies. *pids is malloc'ed. */
size_t process_tree_list(pid_t root, pid_t **pids);

/* Sends a signal to each descendant of this process; returns their number. */
size_t process_tree_signal(int signal);

#endif
