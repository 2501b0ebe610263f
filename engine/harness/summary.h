/* SPDX-License-Identifier: MIT */
/* What a probe says of a series at its end. */
#ifndef RTGAUGE_HARNESS_SUMMARY_H
#define RTGAUGE_HARNESS_SUMMARY_H

#include "base/json.h"
#include "base/series.h"
#include "harness/thread.h"

/*
 * Ends the series: its last window, its summary, its marks; closes its raw samples. t: whose usage is told
 * with it, which has ended; NULL: nobody's.
 */
void summary_write(struct series *s, const struct harness_thread *t, struct json *j);

#endif
