/* SPDX-License-Identifier: MIT */
/*
 * wakeup in kernel space, by the timerlat tracer: from the timer's expiry to its interrupt handler, to a
 * thread in the kernel, and to that thread in user space.
 */
#ifndef RTGAUGE_WAKEUP_KERNEL_SPACE_H
#define RTGAUGE_WAKEUP_KERNEL_SPACE_H

#include "base/options.h"

/* Options that it has in both spaces. */
#define WAKEUP_OPTION_STOP_AT(variable)                                                                      \
	{                                                                                                    \
		.name = "stop-at-ns", .kind = OPTION_INT, .value = (variable), .min = 0,                     \
		.max = INT64_MAX / 4, .help = "end when a latency is larger; 0: never"                       \
	}
#define WAKEUP_OPTION_WINDOW(variable)                                                                       \
	{                                                                                                    \
		.name = "window-ns", .kind = OPTION_INT, .value = (variable), .min = NS_PER_S / 100,         \
		.max = 3600 * NS_PER_S, .help = "length of a window of the stream (1000000000)"              \
	}

/* The verb's whole life, as of every probe. */
int wakeup_kernel_space(int argc, char **argv);

#endif
