// SPDX-License-Identifier: MIT
#include "probes/response/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpuset.h"
#include "base/error.h"
#include "base/tracefs.h"
#include "rt/memory.h"
#include "trace/instance.h"
#include "trace/page.h"

#define CPUS_MAX 1024
#define PAGE_MAX 65536
#define BUFFER_KB "512"
#define NET_RX_SOFTIRQ 3

struct event_type {
	const char *folder, *field, *filter;
	unsigned int id;
	bool used;
};

static struct {
	int instance; /* its folder */
	int pipes[CPUS_MAX];
	unsigned int pipe_count;
	size_t data_offset;
	struct event_type types[TRACE_KINDS];
	int values[TRACE_KINDS];
	bool dropped;
	unsigned char *page;
} trace;

static int failed(const char *what)
{
	return error_line(
		STATUS_CANNOT_MEASURE, "trace",
		"the kernel's tracepoints cannot be recorded: %s: %s; measure without --trace-parts, or run as root",
		what, strerror(errno));
}

static bool enable(struct event_type *type, int value)
{
	char format[TRACE_TEXT_MAX], path[96], filter[48];

	snprintf(path, sizeof(path), "events/%s/format", type->folder);
	if (!trace_read(trace.instance, path, format))
		return false;
	type->id = trace_event_id(format);
	snprintf(path, sizeof(path), "events/%s/filter", type->folder);
	snprintf(filter, sizeof(filter), "%s == %d", type->field, value);
	if (!type->id || !trace_write(trace.instance, path, filter))
		return false;
	snprintf(path, sizeof(path), "events/%s/enable", type->folder);
	type->used = trace_write(trace.instance, path, "1");
	return type->used;
}

static bool open_pipes(void)
{
	struct cpuset online;

	if (!cpuset_online(&online))
		cpuset_allowed(&online);
	for (int cpu = cpuset_next(&online, 0); cpu >= 0 && trace.pipe_count < CPUS_MAX;
	     cpu = cpuset_next(&online, (unsigned int)cpu + 1)) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "per_cpu/cpu%d/trace_pipe_raw", cpu);
		fd = openat(trace.instance, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			return false;
		trace.pipes[trace.pipe_count++] = fd;
	}
	return true;
}

int trace_open(const char *instance, pid_t task, int interrupt)
{
	static const struct event_type types[TRACE_KINDS] = {
		[TRACE_INTERRUPT] = {.folder = "irq/irq_handler_entry", .field = "irq"},
		[TRACE_WAKING] = {.folder = "sched/sched_waking", .field = "pid"},
		[TRACE_SWITCH] = {.folder = "sched/sched_switch", .field = "next_pid"},
	};
	char format[TRACE_TEXT_MAX];
	struct trace_field data;
	int root = tracefs_open();

	memcpy(trace.types, types, sizeof(types));
	if (interrupt == TRACE_NET_RX)
		trace.types[TRACE_INTERRUPT] =
			(struct event_type){.folder = "irq/softirq_entry", .field = "vec"};
	if (root < 0)
		return failed("tracefs");
	trace.instance = trace_instance_open(root, instance);
	if (trace.instance < 0)
		return failed(instance);
	if (!trace_read(root, "events/header_page", format) || !trace_find_field(format, "data", &data))
		return failed("events/header_page");
	trace.data_offset = data.offset;
	close(root);
	trace.page = memory_get(PAGE_MAX);
	if (!trace.page)
		return failed("memory");
	if (!trace_write(trace.instance, "trace_clock", "mono"))
		return failed("trace_clock");
	trace_write(trace.instance, "buffer_size_kb", BUFFER_KB); /* what there is may do as well */
	if (!open_pipes())
		return failed("trace_pipe_raw");
	if (!enable(&trace.types[TRACE_WAKING], (int)task) ||
	    !enable(&trace.types[TRACE_SWITCH], (int)task) ||
	    (interrupt != TRACE_NO_INTERRUPT &&
	     !enable(&trace.types[TRACE_INTERRUPT], interrupt == TRACE_NET_RX ? NET_RX_SOFTIRQ : interrupt)))
		return failed("events");
	return 0;
}

/* Puts it where its time belongs; what comes from one CPU is in order. */
static void insert(struct trace_event *events, unsigned int *have, unsigned int max_events,
		   struct trace_event event)
{
	unsigned int at = *have;

	if (at == max_events) {
		trace.dropped = true;
		return;
	}
	for (; at && events[at - 1].time_ns > event.time_ns; at--)
		events[at] = events[at - 1];
	events[at] = event;
	(*have)++;
}

static void take_page(size_t len, struct trace_event *events, unsigned int *have, unsigned int max_events)
{
	struct trace_page page;
	const unsigned char *record;
	int64_t time_ns;
	size_t length;

	if (!trace_page_open(&page, trace.page, len, trace.data_offset))
		return;
	trace.dropped |= page.dropped;
	while ((record = trace_page_next(&page, &time_ns, &length))) {
		uint16_t id;

		if (length < sizeof(id))
			continue;
		memcpy(&id, record, sizeof(id));
		for (int kind = 0; kind < TRACE_KINDS; kind++) {
			if (trace.types[kind].used && trace.types[kind].id == id)
				insert(events, have, max_events,
				       (struct trace_event){(enum trace_kind)kind, time_ns});
		}
	}
}

unsigned int trace_take(struct trace_event *events, unsigned int have, unsigned int max_events)
{
	for (unsigned int i = 0; i < trace.pipe_count; i++) {
		ssize_t len;

		while ((len = read(trace.pipes[i], trace.page, PAGE_MAX)) > 0)
			take_page((size_t)len, events, &have, max_events);
	}
	return have;
}

bool trace_dropped(void)
{
	return trace.dropped;
}

void trace_close(void)
{
	for (int kind = 0; kind < TRACE_KINDS; kind++) {
		char path[96];

		if (!trace.types[kind].used)
			continue;
		snprintf(path, sizeof(path), "events/%s/enable", trace.types[kind].folder);
		trace_write(trace.instance, path, "0");
	}
	for (unsigned int i = 0; i < trace.pipe_count; i++)
		close(trace.pipes[i]);
	trace.pipe_count = 0;
}
