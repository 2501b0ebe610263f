/* SPDX-License-Identifier: MIT */
/*
 * wakeup in kernel space, with the timerlat tracer. It measures from the timer's expiry to its interrupt
 * handler, to a thread in the kernel, and to that thread in user space.
 */
#ifndef RTGAUGE_WAKEUP_KERNEL_SPACE_H
#define RTGAUGE_WAKEUP_KERNEL_SPACE_H

#include "harness/harness.h"

/* Checks the options and sets the probe's steps in kernel space. Returns 0, or the exit status after an
 * `error` line. */
int wakeup_in_kernel(struct harness *h);

#endif
