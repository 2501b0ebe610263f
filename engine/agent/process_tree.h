/* SPDX-License-Identifier: MIT */
/*
 * All processes that come from this one, also those that went into a session of their own: they stay its
 * descendants because this process is their subreaper.
 */
#ifndef RTGAUGE_PROCESS_TREE_H
#define RTGAUGE_PROCESS_TREE_H

#include <stddef.h>
#include <sys/types.h>

/* Those that live (zombies do not count). *pids is malloc'ed. */
size_t process_tree_list(pid_t **pids);

/* Sends a signal to each; returns how many there were. */
size_t process_tree_signal(int signal);

#endif
