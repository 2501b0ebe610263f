/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_CONTAINER_OF_H
#define RTGAUGE_CONTAINER_OF_H

#include <stddef.h>

/* Returns the structure of this type with `pointer` to its `member`. (Xenomai's headers have one too.) */
#undef container_of
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
