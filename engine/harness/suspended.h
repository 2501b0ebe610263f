/* SPDX-License-Identifier: MIT */
/*
 * How long the machine has been suspended since its boot: the difference of two clocks that cannot be read
 * at once. Preemption between the readings makes one result too large, the other too small.
 */
#ifndef RTGAUGE_SUSPENDED_H
#define RTGAUGE_SUSPENDED_H

#include <stdint.h>

int64_t suspended_at_most_ns(void);
int64_t suspended_at_least_ns(void);

#endif
