/* SPDX-License-Identifier: MIT */
/*
 * An instance of tracefs that the caller makes and removes (agent/setting_trace.h): its files, and the
 * layout of its recording as the kernel describes it (Documentation/trace/events.rst, section 3).
 */
#ifndef RTGAUGE_TRACE_INSTANCE_H
#define RTGAUGE_TRACE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cpuset.h"

#define TRACE_TEXT_MAX 8192
#define TRACE_NAME_MAX 65 /* of an instance */
#define TRACE_RANGE_MAX 120
/* How much of what a program passes to a call the events of calls by name copy (since Linux 6.19). */
#define TRACE_USER_DATA "syscall_user_buf_size"

/* The place of a field in a record, in bytes. */
struct trace_field {
	size_t offset, size;
};

/*
 * Finds another instance of rtgauge that records: another measurement on this kernel, perhaps in another
 * container. own, owns: the two instances of this one; NULL: there is none. Returns whether there is one, and
 * its name.
 */
bool trace_other(int root, const char *own, const char *owns, char name[TRACE_NAME_MAX]);

/* Returns whether this is an instance of a recorder, which records a program for weeks. */
bool trace_is_recorder(const char *name);

/* Returns whether a recorder records on this kernel; false if this user may not know. */
bool trace_recorder(void);

/* Opens instances/NAME below the root of tracefs; -1 with errno, EBUSY if another engine records in it, as
 * from a container, whose lock of the machine is another one. */
int trace_instance_open(int root, const char *name);

/* Sets the CPUs that have rings to read: those that are online, and those that may come online meanwhile. */
void trace_cpus(struct cpuset *cpus);

/* Opens the raw ring of a CPU, which does not block; -1 with errno. */
int trace_ring_open(int instance, int cpu);

/* Writes the whole text. Returns false with errno on failure. */
bool trace_write(int folder, const char *path, const char *text);

/* The same, but adds to the list in the file. */
bool trace_append(int folder, const char *path, const char *text);

/* Sets the part of a filter that lets a range of thread numbers pass, except one: an engine that records its
 * own reading of a ring reads without end, because each reading adds events. but: 0: none. */
void trace_range(const char *field, pid_t first, pid_t last, pid_t but, char text[TRACE_RANGE_MAX]);

/* Reads a file as a text, which is cut at TRACE_TEXT_MAX - 1. On failure, returns false with errno and an
 * empty text. */
bool trace_read(int folder, const char *path, char text[TRACE_TEXT_MAX]);

/* Returns whether the text, words separated by spaces, has this word. */
bool trace_has_word(const char *text, const char *word);

/* Finds the field NAME of a format: "... NAME;\toffset:N;\tsize:N;". Returns false if there is none. */
bool trace_find_field(const char *format, const char *name, struct trace_field *field);

/* Returns the field's number in a record; 0 if the record is too short. */
int64_t trace_number(const unsigned char *record, size_t len, const struct trace_field *field);

/* Returns the id in an event's format, "ID: N"; 0: it has none. */
unsigned int trace_event_id(const char *format);

/* Returns whether the text of events/header_event describes the entries that trace/page.h reads. */
bool trace_entries_known(const char *header_event);

#endif
