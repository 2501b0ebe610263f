/* SPDX-License-Identifier: MIT */
/*
 * The kernel's events that an instance of tracefs records. A list names them, separated by commas:
 * `sched/sched_switch` is an event; `irq_vectors/` followed by `*_entry` are all events of that group with
 * this ending; `irq` is a whole group.
 */
#ifndef RTGAUGE_TRACE_EVENTS_H
#define RTGAUGE_TRACE_EVENTS_H

#include <stdbool.h>

#define TRACE_EVENTS_MAX 256

/* Finds "group/name" of each event of the list that this kernel has, once. Returns how many. */
unsigned int trace_events_find(int instance, const char *list, char *names[TRACE_EVENTS_MAX]);

/* Lets the instance record it or not; returns false with errno. */
bool trace_event_enable(int instance, const char *name, bool on);

/* Reads the event's format file as a text, cut at TRACE_TEXT_MAX - 1 (trace/instance.h); returns false with
 * errno. */
bool trace_event_format(int instance, const char *name, char *text);

#endif
