/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_TIRE_MEMORY_LEFT_H
#define RTGAUGE_TIRE_MEMORY_LEFT_H

#include <stdint.h>

/* Returns the bytes that the kernel can give without swapping (MemAvailable); -1: unknown. */
int64_t tire_memory_left(void);

#endif
