/* SPDX-License-Identifier: MIT */
/*
 * Which of the kernel's events an instance of tracefs records. A list names them, with commas between:
 * `sched/sched_switch`, an event; `irq_vectors/` and `*_entry` behind it, all of that group that end so;
 * `irq`, a whole group.
 */
#ifndef RTGAUGE_TRACE_EVENTS_H
#define RTGAUGE_TRACE_EVENTS_H

#include <stdbool.h>

#define TRACE_EVENTS_MAX 256

/* "group/name" of each event of the list that this kernel has, once. Gives how many. */
unsigned int trace_events_find(int instance, const char *list, char *names[TRACE_EVENTS_MAX]);

/* Has the instance record it or not; false and errno. */
bool trace_event_enable(int instance, const char *name, bool on);

/* The event's format file as a text, cut at TRACE_TEXT_MAX - 1 (trace/instance.h); false and errno. */
bool trace_event_format(int instance, const char *name, char *text);

#endif
