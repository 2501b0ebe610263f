/* SPDX-License-Identifier: MIT */
/* Ends a series. */
#ifndef RTGAUGE_SUMMARY_H
#define RTGAUGE_SUMMARY_H

#include "base/json.h"
#include "base/series.h"
#include "harness/measuring_thread.h"

/* Writes the last window of a series, its outliers, and its summary with its thread's usage (NULL: none);
 * marks lost and impossible samples; closes its samples. */
void summary_write(struct series *s, const struct harness_thread *t, struct json *j);

#endif
