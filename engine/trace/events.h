/* SPDX-License-Identifier: MIT */
/*
 * The kernel events that an instance of tracefs records. A list names them, separated by commas.
 * `sched/sched_switch` is an event, `irq_vectors/` followed by `*_entry` stands for all events of that
 * group with this ending, and `irq` is a whole group.
 */
#ifndef RTGAUGE_TRACE_EVENTS_H
#define RTGAUGE_TRACE_EVENTS_H

#include <stdbool.h>

#define TRACE_EVENTS_MAX 256

/* Finds "group/name" of each listed event that this kernel has, without duplicates. Returns how many. */
unsigned int trace_events_find(int instance, const char *list, char *names[TRACE_EVENTS_MAX]);

/* Lets the instance record the event or not. Returns false with errno on failure. */
bool trace_event_enable(int instance, const char *name, bool on);

/* Reads the event's format file as a text, cut at TRACE_TEXT_MAX - 1 (trace/instance.h). Returns false
 * with errno on failure. */
bool trace_event_format(int instance, const char *name, char *text);

#endif
