/* SPDX-License-Identifier: MIT */
/*
 * Control groups as settings, by names like those of files: `group:DIR` is "present" or "absent",
 * `controller:NAME:DIR` is "on" or "off" (whether the groups below DIR have it, version 2).
 */
#ifndef RTGAUGE_SETTING_GROUP_H
#define RTGAUGE_SETTING_GROUP_H

#include <stdbool.h>

bool setting_group_is(const char *name);

/* The folder of a `group:` name, else NULL. */
const char *setting_group_dir(const char *name);

/* 0 or an errno; EINVAL: not a file system of control groups. *value is malloc'ed. */
int setting_group_read(const char *name, char **value);

/* 0 or an errno. The tasks of a group that is made absent go to the one above. */
int setting_group_write(const char *name, const char *value);

#endif
