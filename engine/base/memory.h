/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_MEMORY_H
#define RTGAUGE_MEMORY_H

#include <stddef.h>

/* Locks all memory of the process, present and future. Returns 0 or an errno. */
int memory_lock(void);

/* Returns zeroed memory with every page touched, aligned to cache lines; NULL: none is left. Measuring code
 * never frees it. */
void *memory_get(size_t size);

#endif
