/* SPDX-License-Identifier: MIT */
/* How a series ends. */
#ifndef RTGAUGE_SUMMARY_H
#define RTGAUGE_SUMMARY_H

#include "base/json.h"
#include "base/series.h"
#include "harness/measuring_thread.h"

/* Writes the last window of a series, its outliers and summary with what its thread used (NULL: it has none),
 * and the marks of what was lost or impossible; closes its samples. */
void summary_write(struct series *s, const struct harness_thread *t, struct json *j);

#endif
