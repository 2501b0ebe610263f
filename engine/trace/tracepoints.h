/* SPDX-License-Identifier: MIT */
/*
 * Events of the scheduler's tracepoints that have none of their own: dynamic events of tracefs
 * (Documentation/trace/fprobetrace.rst, Linux 6.5). They belong to an instance of tracefs: their group has
 * the instance's name, and whoever removes the instance removes them.
 */
#ifndef RTGAUGE_TRACE_TRACEPOINTS_H
#define RTGAUGE_TRACE_TRACEPOINTS_H

#include <stdbool.h>

#include "trace/instance.h"

/* Writes the name of the group of the instance's events. */
void tracepoints_group(const char *instance, char group[TRACE_NAME_MAX]);

/* Makes the events that this kernel can have. root: the root of tracefs. */
void tracepoints_create(int root, const char *instance);

/* Returns whether the instance has such events. */
bool tracepoints_exist(int root, const char *instance);

/* Removes the instance's events. Returns 0 or an errno; EBUSY: they are being recorded. */
int tracepoints_remove(int root, const char *instance);

#endif
