/* SPDX-License-Identifier: MIT */
/* The kernel's tracing file system, mounted or not. */
#ifndef RTGAUGE_TRACEFS_H
#define RTGAUGE_TRACEFS_H

#include <stdbool.h>

/*
 * A descriptor of its root folder: where it is mounted that one, else a mount of its own that no folder shows
 * and that ends with the descriptor. -1 and errno.
 */
int tracefs_open(void);

/* Whether a text is the name of an instance: 1 to 64 letters, digits, `-` and `_`. */
bool tracefs_is_name(const char *name);

#endif
