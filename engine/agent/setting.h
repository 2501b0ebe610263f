/* SPDX-License-Identifier: MIT */
/* Reads, writes and compares one setting of any kind (agent/setting_kind.h). */
#ifndef RTGAUGE_SETTING_H
#define RTGAUGE_SETTING_H

#include <stdbool.h>
#include <stddef.h>

#define SETTING_MAX_LEN 4096

/* Returns whether it is a path, or another kind of setting's name. */
bool setting_is_name(const char *name);

/* Returns whether a reboot resets it: a file in /proc, /sys, /dev or /run, and all other kinds. */
bool setting_is_volatile(const char *name);

/* Reads the value that restores the present state; *value is malloc'ed, NULL after an error. Returns 0 or
 * an error of agent/agent_error.h. */
int setting_read(const char *name, bool is_volatile, char **value);

/* Returns 0 or an error of agent/agent_error.h. */
int setting_write(const char *name, bool is_volatile, const char *value);

/* Returns whether two texts are the same value in different notations: spaces, "0,1" and "0-1", "3" and
 * "00000003", "1" and "Y". */
bool setting_same(const char *a, const char *b);

#endif
