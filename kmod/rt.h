/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task in the kernel needs from its runtime: a clock, a timer on one CPU, a thread, an
 * interrupt that the task raises itself, and lines. The runtime is Linux or, if RTGAUGE_COBALT
 * or RTGAUGE_RTAI is defined, Xenomai's Cobalt core (RTDM) or RTAI's scheduler (no interrupt, no
 * line), whose threads Linux does not delay. All times are on CLOCK_MONOTONIC.
 */
#ifndef RTGAUGE_RT_H
#define RTGAUGE_RT_H

#include <linux/err.h>
#include <linux/interrupt.h>

#include "compat.h"
#include "core.h"

/* Called on the timer's CPU. true: call again at *next_ns. */
typedef bool (*rt_expired_t)(s64 *next_ns);

#ifdef RTGAUGE_COBALT
#include "rt_cobalt.h"
#include "rt_cobalt_line.h"
#elif defined(RTGAUGE_RTAI)
#include "rt_rtai.h"
#else
#include "rt_linux.h"
#endif

#endif
