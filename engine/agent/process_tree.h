/* SPDX-License-Identifier: MIT */
/*
 * All processes that come from one. Those of this process stay its descendants also if they called setsid,
 * because it is their subreaper.
 */
#ifndef RTGAUGE_PROCESS_TREE_H
#define RTGAUGE_PROCESS_TREE_H

#include <stddef.h>
#include <sys/types.h>

/* Those of `root` that live (zombies do not count). *pids is malloc'ed. */
size_t process_tree_list(pid_t root, pid_t **pids);

/* Sends a signal to each of this process; returns how many there were. */
size_t process_tree_signal(int signal);

#endif
