/* SPDX-License-Identifier: MIT */
/* The distance of data that two threads write without slowing each other down. */
#ifndef RTGAUGE_CACHE_LINE_H
#define RTGAUGE_CACHE_LINE_H

#define CACHE_LINE 64

#endif
