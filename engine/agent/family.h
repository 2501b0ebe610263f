/* SPDX-License-Identifier: MIT */
/*
 * All processes that come from this one, also those that went into a session of their own: they stay its
 * descendants because this process is their subreaper.
 */
#ifndef RTGAUGE_FAMILY_H
#define RTGAUGE_FAMILY_H

#include <stddef.h>
#include <sys/types.h>

/* Those that live (zombies do not count). *pids is malloc'ed. */
size_t family_list(pid_t **pids);

/* Sends a signal to each; returns how many there were. */
size_t family_signal(int signal);

#endif
