/* SPDX-License-Identifier: MIT */
/*
 * The kernel's tracepoints of one task's wake-ups, in an instance of tracefs that the caller makes and
 * removes: the interrupt or softirq that begins, the waker, the switch to the task.
 */
#ifndef RTGAUGE_RESPONSE_TRACE_H
#define RTGAUGE_RESPONSE_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/reader.h"

enum trace_kind { TRACE_INTERRUPT, TRACE_WAKING, TRACE_SWITCH, TRACE_KINDS };

#define TRACE_NO_INTERRUPT (-1)
#define TRACE_NET_RX (-2) /* the softirq that receives from the network */

struct trace_event {
	enum trace_kind kind;
	int64_t time_ns; /* CLOCK_MONOTONIC */
};

struct trace_event_type {
	const char *folder, *field, *filter;
	unsigned int id;
	bool used;
};

struct trace {
	struct trace_reader reader;
	struct trace_event_type types[TRACE_KINDS];
	struct trace_event *events; /* the caller's, while it reads them */
	unsigned int have, max_events;
};

/*
 * Begins to trace the task. interrupt: its number, or one of the two above. Returns 0, or the exit status
 * after an `error` line.
 */
int trace_open(struct trace *trace, const char *instance, pid_t task, int interrupt);

/* Adds the events since the last call, in order of time, after the first `have` in the array; returns how
 * many are in it then, at most `max_events`. */
unsigned int trace_take(struct trace *trace, struct trace_event *events, unsigned int have,
			unsigned int max_events);

/* Whether the kernel dropped events since the beginning, or there was no room for them. */
bool trace_dropped(const struct trace *trace);

void trace_close(struct trace *trace);

#endif
