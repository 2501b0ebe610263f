/* SPDX-License-Identifier: MIT */
/* Reports how often a co-kernel moved threads to Linux. */
#ifndef RTGAUGE_MODE_SWITCHES_H
#define RTGAUGE_MODE_SWITCHES_H

#include "base/json.h"
#include "harness/harness.h"

/* Writes the result `cokernel` with the switches of all threads, and of the second process while they
 * measured. Each that had switches gets a mark. */
void mode_switches_tell(const struct harness *h, struct json *j);

#endif
