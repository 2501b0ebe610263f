/* SPDX-License-Identifier: MIT */
/*
 * Traces one task's wake-ups with the kernel's tracepoints, in an instance of tracefs that the caller
 * makes and removes. The events are the interrupt or softirq that begins, the waker, and the switch to the
 * task.
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
	struct trace_event *events; /* the caller's own while it reads the events */
	unsigned int have, max_events;
};

/*
 * Starts tracing the task. interrupt: its number, or one of the two values above. Returns 0, or the exit
 * status after an `error` line.
 */
int trace_open(struct trace *trace, const char *instance, pid_t task, int interrupt);

/* Adds the events since the last call, in time order, after the first `have` in the array. Returns how
 * many the array then has, at most `max_events`. */
unsigned int trace_take(struct trace *trace, struct trace_event *events, unsigned int have,
			unsigned int max_events);

/* Returns whether the kernel dropped events since the beginning, or whether there was no room for some. */
bool trace_dropped(const struct trace *trace);

void trace_close(struct trace *trace);

#endif
