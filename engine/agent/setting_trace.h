/* SPDX-License-Identifier: MIT */
/*
 * `trace:NAME`: an instance of tracefs, `present` or `absent`; `osnoise:FILE`: a setting of the osnoise and
 * timerlat tracers, which all instances share; `osnoise:workload`: their own threads, `on` or `off`.
 */
#ifndef RTGAUGE_SETTING_TRACE_H
#define RTGAUGE_SETTING_TRACE_H

#include <stdbool.h>

bool setting_trace_is(const char *name);

/* *value is malloc'ed. 0 or an errno. */
int setting_trace_read(const char *name, char **value);
int setting_trace_write(const char *name, const char *value);

#endif
