/* SPDX-License-Identifier: MIT */
/* One setting of any kind (agent/setting_kind.h): how it is read, written and compared. */
#ifndef RTGAUGE_SETTING_H
#define RTGAUGE_SETTING_H

#include <stdbool.h>
#include <stddef.h>

#define SETTING_MAX_LEN 4096

/* A path, or the name of another kind of setting. */
bool setting_is_name(const char *name);

/* Gone after a reboot: a file below /proc, /sys, /dev or /run, and every other kind of setting. */
bool setting_is_volatile(const char *name);

/* Reads what has to be written to bring the present value back; *value is malloc'ed, NULL after an error. 0
 * or an error of agent/agent_error.h. */
int setting_read(const char *name, bool is_volatile, char **value);

/* 0 or an error of agent/agent_error.h. */
int setting_write(const char *name, bool is_volatile, const char *value);

/* The same value, though perhaps written another way: spaces, "0,1" and "0-1", "3" and "00000003", "1" and
 * "Y". */
bool setting_same(const char *a, const char *b);

#endif
