/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_MEMORY_H
#define RTGAUGE_MEMORY_H

#include <stddef.h>

/* Locks all present and future memory of the process. Returns 0 or an errno. */
int memory_lock(void);

/* Returns zeroed memory, aligned to cache lines, with every page already touched; NULL: no memory is left.
 * Measuring code never frees it. */
void *memory_get(size_t size);

#endif
