/* SPDX-License-Identifier: MIT */
/* How far apart data of two threads must be, so that the threads do not slow each other down. */
#ifndef RTGAUGE_CACHE_LINE_H
#define RTGAUGE_CACHE_LINE_H

#define CACHE_LINE 64

#endif
