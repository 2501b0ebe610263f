/* SPDX-License-Identifier: MIT */
/*
 * How long the machine has been suspended since it booted: the difference of two clocks that cannot be read
 * at once. A thread that is preempted between the readings makes the one too large, the other too small.
 */
#ifndef RTGAUGE_SUSPENDED_H
#define RTGAUGE_SUSPENDED_H

#include <stdint.h>

int64_t suspended_at_most_ns(void);
int64_t suspended_at_least_ns(void);

#endif
