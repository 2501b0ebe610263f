/* SPDX-License-Identifier: MIT */
/* Reports how often a co-kernel handed threads to Linux. */
#ifndef RTGAUGE_MODE_SWITCHES_H
#define RTGAUGE_MODE_SWITCHES_H

#include "base/json.h"
#include "harness/harness.h"

/* Writes the result `cokernel`: the switches of all threads and of the second process while they measured,
 * with a mark for each that had any. */
void mode_switches_tell(const struct harness *h, struct json *j);

#endif
