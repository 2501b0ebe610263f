/* SPDX-License-Identifier: MIT */
/* What a point costs: the time that a call takes longer if the kernel records an event at its beginning. */
#ifndef RTGAUGE_WATCH_POINT_COST_H
#define RTGAUGE_WATCH_POINT_COST_H

#include <stdint.h>

/* Measures it in this process. instance: of tracefs, in which no event is on. event: group/event, which the
 * caller made at the place that the verb `point-place` prints. Returns ns; -1 with errno on failure. */
int64_t point_cost_measure(int instance, const char *event);

#endif
