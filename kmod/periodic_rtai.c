// SPDX-License-Identifier: GPL-2.0-only
/* rtgauge_periodic_rtai: the same task by RTAI's scheduler. */
#define RTGAUGE_RTAI
#include "rtgauge_periodic.c"
