/* SPDX-License-Identifier: MIT */
/*
 * How long the machine has been suspended since it booted: the difference between two clocks that cannot
 * be read at once. If the thread is preempted between the readings, one result is too large and the other
 * too small.
 */
#ifndef RTGAUGE_SUSPENDED_H
#define RTGAUGE_SUSPENDED_H

#include <stdint.h>

int64_t suspended_at_most_ns(void);
int64_t suspended_at_least_ns(void);

#endif
