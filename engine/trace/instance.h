/* SPDX-License-Identifier: MIT */
/*
 * An instance of tracefs that somebody else makes and removes (agent/setting_trace.h): its files, and how
 * what it records is laid out, by the kernel's own description of it (Documentation/trace/events.rst, section
 * 3).
 */
#ifndef RTGAUGE_TRACE_INSTANCE_H
#define RTGAUGE_TRACE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>

#define TRACE_TEXT_MAX 8192

/* Where a field lies in a record, in bytes. */
struct trace_field {
	size_t offset, size;
};

/* A descriptor of instances/NAME below tracefs's root; -1 and errno. */
int trace_instance_open(int root, const char *name);

/* A descriptor of the raw ring of a CPU, which does not wait; -1 and errno. */
int trace_ring_open(int instance, int cpu);

/* Writes the whole text; false and errno. */
bool trace_write(int folder, const char *path, const char *text);

/* Likewise, and a list that the file holds keeps what is in it. */
bool trace_append(int folder, const char *path, const char *text);

/* Reads a file as a text, which is cut at TRACE_TEXT_MAX - 1; false and errno, and an empty text. */
bool trace_read(int folder, const char *path, char text[TRACE_TEXT_MAX]);

/* Whether the text, words with spaces between, has this word. */
bool trace_has_word(const char *text, const char *word);

/* The field NAME of a format: "... NAME;\toffset:N;\tsize:N;". false: it has none. */
bool trace_find_field(const char *format, const char *name, struct trace_field *field);

/* The id of an event's format, "ID: N"; 0: it has none. */
unsigned int trace_event_id(const char *format);

/* Whether the text of events/header_event describes the entries that trace/page.h reads. */
bool trace_entries_known(const char *header_event);

#endif
