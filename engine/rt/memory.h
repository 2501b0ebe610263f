/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_MEMORY_H
#define RTGAUGE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Locks all memory of the process, now and later. 0 or an errno. */
int memory_lock(void);

/* Whether the user's limit (RLIMIT_MEMLOCK) can be why memory is refused once all of it is locked. */
bool memory_limited(void);

/* One sentence: why the lock was refused and what to do. Returns text. */
char *memory_refusal(int error, char *text, size_t size);

/* Zeroed memory with every page touched, aligned to cache lines; NULL: none is left. Never freed by measuring
 * code. */
void *memory_get(size_t size);

#endif
