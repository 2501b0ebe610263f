/* SPDX-License-Identifier: MIT */
/*
 * The kernel's events at the begin and the end of the system calls in which a thread may sleep. The kernel
 * has an event for each call by name; other calls then cost nothing but a look-up. It has none for the calls
 * of 32-bit programs on a 64-bit kernel: those need the events of all calls, with a filter.
 */
#ifndef RTGAUGE_WATCH_CALL_EVENTS_H
#define RTGAUGE_WATCH_CALL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/watch/blocking_calls.h"
#include "trace/events.h"
#include "trace/instance.h"

enum call_edge { NO_CALL, CALL_BEGINS, CALL_ENDS };

struct call_events {
	char *names[TRACE_EVENTS_MAX];
	unsigned int count;
	bool by_name;			     /* else the events of all calls, which have a filter */
	unsigned char edges[UINT16_MAX + 1]; /* enum call_edge of each event's id */
	struct trace_field number, arguments, result;
};

/* Finds them. Without any, count is 0. Each begin has an end. */
void call_events_find(struct call_events *events, int instance, enum call_table table);

/* Enables or disables them. Returns false with errno, and the name of the event, on failure. */
bool call_events_enable(const struct call_events *events, int instance, bool on, const char **name);

/* Frees the names. */
void call_events_close(struct call_events *events);

#endif
