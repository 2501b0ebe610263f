// SPDX-License-Identifier: GPL-2.0-only
/* rtgauge_response_cobalt: the same task on Xenomai's Cobalt core. */
#define RTGAUGE_COBALT
#include "rtgauge_response.c"
