/* SPDX-License-Identifier: MIT */
/* What a probe says of a series at its end. */
#ifndef RTGAUGE_FRAME_SUMMARY_H
#define RTGAUGE_FRAME_SUMMARY_H

#include "base/json.h"
#include "base/series.h"
#include "frame/thread.h"

/*
 * Ends the series: its last window, its summary, its marks; closes its raw samples. t: whose usage is told
 * with it, which has ended; NULL: nobody's.
 */
void summary_write(struct series *s, const struct frame_thread *t, struct json *j);

#endif
