/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_DMA_LATENCY_H
#define RTGAUGE_DMA_LATENCY_H

#include <stdint.h>

/*
 * Requests C-states that are left within this many us (0: only polling) with /dev/cpu_dma_latency
 * (Documentation/power/pm_qos_interface.rst), as long as the process lives. Returns 0 or an errno.
 */
int dma_latency_hold(int64_t latency_us);

#endif
