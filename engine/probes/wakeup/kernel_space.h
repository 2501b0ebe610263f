/* SPDX-License-Identifier: MIT */
/*
 * wakeup in kernel space, by the timerlat tracer: from the timer's expiry to its interrupt handler, to a
 * thread in the kernel, and to that thread in user space.
 */
#ifndef RTGAUGE_WAKEUP_KERNEL_SPACE_H
#define RTGAUGE_WAKEUP_KERNEL_SPACE_H

#include "base/options.h"

enum space { SPACE_USER, SPACE_KERNEL };

extern const char *const space_names[];

/* The verb's whole life, as of every probe. */
int wakeup_kernel_space(int argc, char **argv);

#endif
