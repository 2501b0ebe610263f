/* SPDX-License-Identifier: MIT */
/* `module:FILE`: a kernel module, `present` or `absent`. FILE is its .ko, perhaps compressed (.ko.xz, .ko.gz,
 * .ko.zst); only its name is used to look for the module and to remove it. */
#ifndef RTGAUGE_SETTING_MODULE_H
#define RTGAUGE_SETTING_MODULE_H

#include <stdbool.h>

bool setting_module_is(const char *name);

/* *value is malloc'ed. 0 or an errno. */
int setting_module_read(const char *name, char **value);

/* 0 or an errno: what finit_module(2) and delete_module(2) say. */
int setting_module_write(const char *name, const char *value);

#endif
