// SPDX-License-Identifier: MIT
#include "probes/watch/call_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_CALLS "raw_syscalls/sys_enter,raw_syscalls/sys_exit"
#define LAYOUT "syscalls/sys_enter_read" /* its first argument is `fd` */
#define ENTER "/sys_enter"

/* Reads where the numbers of the events by name are: all have the same layout. Returns false if this kernel
 * has no such events. */
static bool read_layout(struct call_events *events, int instance)
{
	char text[TRACE_TEXT_MAX];

	if (!trace_event_format(instance, LAYOUT, text) ||
	    !trace_find_field(text, "__syscall_nr", &events->number) ||
	    !trace_find_field(text, "fd", &events->arguments) || events->arguments.size != sizeof(long))
		return false;
	events->arguments.size *= 6;
	return true;
}

/* The same for the events of all calls. */
static bool read_layout_of_all(struct call_events *events, int instance)
{
	char text[TRACE_TEXT_MAX];

	return trace_event_format(instance, "raw_syscalls/sys_enter", text) &&
	       trace_find_field(text, "id", &events->number) &&
	       trace_find_field(text, "args[6]", &events->arguments);
}

/* Without a filter, all calls are recorded. */
static void filter(const struct call_events *events, int instance, enum call_table table)
{
	char text[CALL_FILTER_MAX], path[64];

	blocking_calls_filter(table, text);
	for (unsigned int i = 0; i < events->count; i++) {
		snprintf(path, sizeof(path), "events/%s/filter", events->names[i]);
		trace_write(instance, path, text);
	}
}

/* Sets the edges of the events and the place of the result. */
static void read_ids(struct call_events *events, int instance)
{
	char text[TRACE_TEXT_MAX];

	for (unsigned int i = 0; i < events->count; i++) {
		bool begins = strstr(events->names[i], ENTER);
		unsigned int id =
			trace_event_format(instance, events->names[i], text) ? trace_event_id(text) : 0;

		if (id && id <= UINT16_MAX)
			events->edges[id] = begins ? CALL_BEGINS : CALL_ENDS;
		if (!begins)
			trace_find_field(text, "ret", &events->result);
	}
}

void call_events_find(struct call_events *events, int instance, enum call_table table)
{
	char list[CALL_EVENTS_MAX];
	/* The events of a 32-bit kernel have the names of its functions, which are not those of the calls. */
	bool by_name = events->by_name =
		table == CALLS_NATIVE && sizeof(long) == 8 && read_layout(events, instance);

	if (by_name) {
		blocking_calls_events(list);
		trace_write(instance, TRACE_USER_DATA, "0");
	}
	if (by_name || read_layout_of_all(events, instance))
		events->count = trace_events_find(instance, by_name ? list : ALL_CALLS, events->names);
	read_ids(events, instance);
	if (!by_name)
		filter(events, instance, table);
}

bool call_events_enable(const struct call_events *events, int instance, bool on, const char **name)
{
	bool done = true;

	for (unsigned int i = 0; i < events->count && done; i++) {
		*name = events->names[i];
		done = trace_event_enable(instance, events->names[i], on);
	}
	return done;
}

void call_events_close(struct call_events *events)
{
	for (unsigned int i = 0; i < events->count; i++)
		free(events->names[i]);
	events->count = 0;
}
