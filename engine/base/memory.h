/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_MEMORY_H
#define RTGAUGE_MEMORY_H

#include <stddef.h>

/* Locks all memory of the process, now and later. 0 or an errno. */
int memory_lock(void);

/* Zeroed memory with every page touched, aligned to cache lines; NULL: none is left. Never freed by measuring
 * code. */
void *memory_get(size_t size);

#endif
