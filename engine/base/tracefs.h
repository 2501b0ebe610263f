/* SPDX-License-Identifier: MIT */
/* Opens the kernel's tracing file system, whether it is mounted or not. */
#ifndef RTGAUGE_TRACEFS_H
#define RTGAUGE_TRACEFS_H

#include <stdbool.h>

/*
 * Returns a descriptor of its root folder. If it is not mounted, the folder is of a private mount that no
 * folder shows and that ends with the descriptor. -1 with errno on failure.
 */
int tracefs_open(void);

/* Returns whether a text can name an instance: 1 to 64 letters, digits, `-` and `_`. */
bool tracefs_is_name(const char *name);

#endif
