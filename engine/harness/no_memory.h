/* SPDX-License-Identifier: MIT */
/* What a probe says where memory is refused. */
#ifndef RTGAUGE_HARNESS_NO_MEMORY_H
#define RTGAUGE_HARNESS_NO_MEMORY_H

#include <stdbool.h>

/* The `error` line of a probe that has no memory; gives the exit status. */
int harness_no_memory(void);

/* Whether it is this user's limit on locked memory that refuses more of it. */
bool harness_memory_limited(void);

#endif
