/* SPDX-License-Identifier: MIT */
/*
 * Control groups as settings, by names like those of files: `group:DIR` is "present" or "absent",
 * `controller:NAME:DIR` is "on" or "off" (whether the groups below DIR have it, version 2).
 */
#ifndef RTGAUGE_KNOB_GROUP_H
#define RTGAUGE_KNOB_GROUP_H

#include <stdbool.h>

bool knob_group_is(const char *name);

/* The folder of a `group:` name, else NULL. */
const char *knob_group_dir(const char *name);

/* 0 or an errno; EINVAL: not a file system of control groups. *value is malloc'ed. */
int knob_group_read(const char *name, char **value);

/* 0 or an errno. The tasks of a group that is made absent go to the one above. */
int knob_group_write(const char *name, const char *value);

#endif
