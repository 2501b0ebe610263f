/* SPDX-License-Identifier: MIT */
/* How far apart two threads write that are not to slow each other down. */
#ifndef RTGAUGE_CACHE_LINE_H
#define RTGAUGE_CACHE_LINE_H

#define CACHE_LINE 64

#endif
