// SPDX-License-Identifier: MIT
#include "ext/signal/engine/response/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/instance.h"

#define BUFFER_KB "512"
#define NET_RX_SOFTIRQ 3

static int failed(const char *what)
{
	return error_line(
		STATUS_CANNOT_MEASURE, "trace",
		"the kernel's tracepoints cannot be recorded (%s: %s); measure without --trace-parts, or "
		"run as root",
		what, strerror(errno));
}

static bool enable(const struct trace *trace, struct trace_event_type *type, int value)
{
	char format[TRACE_TEXT_MAX], path[96], filter[48];

	snprintf(path, sizeof(path), "events/%s/format", type->folder);
	if (!trace_read(trace->reader.instance, path, format))
		return false;
	type->id = trace_event_id(format);
	snprintf(path, sizeof(path), "events/%s/filter", type->folder);
	snprintf(filter, sizeof(filter), "%s == %d", type->field, value);
	if (!type->id || !trace_write(trace->reader.instance, path, filter))
		return false;
	snprintf(path, sizeof(path), "events/%s/enable", type->folder);
	type->used = trace_write(trace->reader.instance, path, "1");
	return type->used;
}

int trace_open(struct trace *trace, const char *instance, pid_t task, int interrupt)
{
	static const struct trace_event_type types[TRACE_KINDS] = {
		[TRACE_INTERRUPT] = {.folder = "irq/irq_handler_entry", .field = "irq"},
		[TRACE_WAKING] = {.folder = "sched/sched_waking", .field = "pid"},
		[TRACE_SWITCH] = {.folder = "sched/sched_switch", .field = "next_pid"},
	};
	const char *lacks;

	memcpy(trace->types, types, sizeof(types));
	if (interrupt == TRACE_NET_RX)
		trace->types[TRACE_INTERRUPT] =
			(struct trace_event_type){.folder = "irq/softirq_entry", .field = "vec"};
	lacks = trace_reader_open(&trace->reader, instance, BUFFER_KB);
	if (lacks)
		return failed(lacks);
	if (!enable(trace, &trace->types[TRACE_WAKING], (int)task) ||
	    !enable(trace, &trace->types[TRACE_SWITCH], (int)task) ||
	    (interrupt != TRACE_NO_INTERRUPT &&
	     !enable(trace, &trace->types[TRACE_INTERRUPT],
		     interrupt == TRACE_NET_RX ? NET_RX_SOFTIRQ : interrupt)))
		return failed("events");
	return 0;
}

/* Inserts the event at its time. Events of one CPU come in order. */
static void insert(struct trace *trace, struct trace_event event)
{
	unsigned int at = trace->have;

	if (at == trace->max_events) {
		trace->reader.dropped = true;
		return;
	}
	for (; at && trace->events[at - 1].time_ns > event.time_ns; at--)
		trace->events[at] = trace->events[at - 1];
	trace->events[at] = event;
	trace->have++;
}

static void take_record(void *user, const unsigned char *record, size_t len, int64_t time_ns, int cpu)
{
	struct trace *trace = user;
	uint16_t id;

	(void)cpu;
	if (len < sizeof(id))
		return;
	memcpy(&id, record, sizeof(id));
	for (int kind = 0; kind < TRACE_KINDS; kind++) {
		if (trace->types[kind].used && trace->types[kind].id == id)
			insert(trace, (struct trace_event){(enum trace_kind)kind, time_ns});
	}
}

unsigned int trace_take(struct trace *trace, struct trace_event *events, unsigned int have,
			unsigned int max_events)
{
	trace->events = events;
	trace->have = have;
	trace->max_events = max_events;
	trace_reader_take(&trace->reader, SIZE_MAX, take_record, trace);
	return trace->have;
}

bool trace_dropped(const struct trace *trace)
{
	return trace->reader.dropped;
}

void trace_close(struct trace *trace)
{
	for (int kind = 0; kind < TRACE_KINDS; kind++) {
		char path[96];

		if (!trace->types[kind].used)
			continue;
		snprintf(path, sizeof(path), "events/%s/enable", trace->types[kind].folder);
		trace_write(trace->reader.instance, path, "0");
	}
	trace_reader_close(&trace->reader);
}
