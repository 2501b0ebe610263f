/* SPDX-License-Identifier: MIT */
/* Ends a series. */
#ifndef RTGAUGE_SUMMARY_H
#define RTGAUGE_SUMMARY_H

#include "base/json.h"
#include "base/series.h"
#include "harness/measuring_thread.h"

/* Writes a series' last window, its outliers, and its summary with its thread's usage (NULL: none). Marks
 * lost and impossible samples. Closes its samples file. */
void summary_write(struct series *s, const struct harness_thread *t, struct json *j);

#endif
