// SPDX-License-Identifier: MIT
#include "probes/watch/sched_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "trace/events.h"
#include "trace/instance.h"
#include "trace/reader.h"

#define BUFFER_KB "1024"
#define PENDING_MAX 65536
#define FLAG_HARDIRQ 8 /* include/linux/trace_events.h */
#define FLAG_SOFTIRQ 16
#define INTERRUPTIBLE 1
#define RESTART_FIRST (-516) /* ERESTART_RESTARTBLOCK to ERESTARTSYS (include/linux/errno.h) */
#define RESTART_LAST (-512)
#define REPORTED_STATES 255 /* states of a sleeping task; the bits above say whether it was preempted */
#define HELD_STATES 14	    /* uninterruptible, stopped, traced (TASK_REPORT, include/linux/sched.h) */

static const char *const names[] = {"sched/sched_waking", "sched/sched_switch", "raw_syscalls/sys_enter",
				    "raw_syscalls/sys_exit"};

static int failed(const char *what)
{
	return error_line(STATUS_CANNOT_MEASURE, "trace", "the program cannot be watched (%s: %s)", what,
			  strerror(errno));
}

static bool read_formats(struct sched_events *events)
{
	char text[TRACE_TEXT_MAX];

	if (!trace_event_format(events->reader.instance, names[SCHED_WAKING], text) ||
	    !trace_find_field(text, "common_flags", &events->flags) ||
	    !trace_find_field(text, "common_pid", &events->current) ||
	    !trace_find_field(text, "pid", &events->woken))
		return false;
	events->ids[SCHED_WAKING] = trace_event_id(text);
	if (!trace_event_format(events->reader.instance, names[SCHED_SWITCH], text) ||
	    !trace_find_field(text, "prev_pid", &events->from) ||
	    !trace_find_field(text, "prev_state", &events->state) ||
	    !trace_find_field(text, "next_pid", &events->to) ||
	    !trace_find_field(text, "next_comm[16]", &events->to_name))
		return false;
	events->ids[SCHED_SWITCH] = trace_event_id(text);
	if (trace_event_format(events->reader.instance, names[SCHED_SYSCALL], text) &&
	    trace_find_field(text, "id", &events->call) &&
	    trace_find_field(text, "args[6]", &events->arguments))
		events->ids[SCHED_SYSCALL] = trace_event_id(text);
	if (events->ids[SCHED_SYSCALL] &&
	    trace_event_format(events->reader.instance, names[SCHED_RETURN], text) &&
	    trace_find_field(text, "ret", &events->result))
		events->ids[SCHED_RETURN] = trace_event_id(text);
	return true;
}

static bool choose_threads(const struct sched_events *events, const pid_t *tids, int count)
{
	char text[1024];
	size_t len = 0;

	for (int i = 0; i < count && len < sizeof(text) - 16; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%d ", (int)tids[i]);
	return trace_append(events->reader.instance, "set_event_pid", text);
}

void sched_events_add(const struct sched_events *events, const pid_t *tids, int count)
{
	choose_threads(events, tids, count); /* a thread that has ended meanwhile is left out */
}

bool sched_events_have_calls(const struct sched_events *events)
{
	return events->ids[SCHED_SYSCALL];
}

int sched_events_open(struct sched_events *events, const char *instance, const pid_t *tids, int count)
{
	const char *lacks = trace_reader_open(&events->reader, instance, BUFFER_KB);

	if (lacks)
		return failed(lacks);
	events->pending = memory_get(PENDING_MAX * sizeof(*events->pending));
	if (!events->pending)
		return failed("memory");
	if (!read_formats(events) || !choose_threads(events, tids, count))
		return failed("events");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (events->ids[i] && !trace_event_enable(events->reader.instance, names[i], true))
			return failed(names[i]);
	}
	return 0;
}

static int64_t number(const unsigned char *record, size_t len, const struct trace_field *field)
{
	int64_t wide = 0;
	int32_t word = 0;

	if (field->size > len || field->offset > len - field->size)
		return 0;
	if (field->size == sizeof(wide)) {
		memcpy(&wide, record + field->offset, sizeof(wide));
		return wide;
	}
	memcpy(&word, record + field->offset, field->size < sizeof(word) ? field->size : sizeof(word));
	return word;
}

static int64_t argument(const struct sched_events *events, const unsigned char *record, size_t len,
			size_t which)
{
	size_t size = events->arguments.size / 6;
	const struct trace_field field = {events->arguments.offset + which * size, size};

	return number(record, len, &field);
}

static void add(void *user, const unsigned char *record, size_t len, int64_t time_ns, int cpu)
{
	struct sched_events *events = user;
	struct sched_event event = {.time_ns = time_ns, .cpu = cpu};
	uint16_t id;

	if (len < sizeof(id))
		return;
	memcpy(&id, record, sizeof(id));
	while (event.kind < SCHED_RETURN && id != events->ids[event.kind])
		event.kind++;
	if (id != events->ids[event.kind])
		return;
	if (events->count == PENDING_MAX) {
		events->reader.dropped = true;
		return;
	}
	event.current = (pid_t)number(record, len, &events->current);
	event.hardirq = number(record, len, &events->flags) & FLAG_HARDIRQ;
	event.softirq = number(record, len, &events->flags) & FLAG_SOFTIRQ;
	if (event.kind == SCHED_WAKING) {
		event.to = (pid_t)number(record, len, &events->woken);
	} else if (event.kind == SCHED_SYSCALL) {
		event.to = event.current;
		event.call = (struct blocking_call){number(record, len, &events->call),
						    argument(events, record, len, 1),
						    argument(events, record, len, 2)};
	} else if (event.kind == SCHED_RETURN) {
		int64_t result = number(record, len, &events->result);

		event.to = event.current;
		event.restarts = result >= RESTART_FIRST && result <= RESTART_LAST;
	} else {
		event.from = (pid_t)number(record, len, &events->from);
		event.to = (pid_t)number(record, len, &events->to);
		event.runnable = !(number(record, len, &events->state) & REPORTED_STATES);
		event.held = number(record, len, &events->state) & HELD_STATES;
		event.sleeps = (number(record, len, &events->state) & REPORTED_STATES) == INTERRUPTIBLE;
		if (events->to_name.offset + sizeof(event.to_name) <= len)
			memcpy(event.to_name, record + events->to_name.offset, sizeof(event.to_name) - 1);
	}
	events->pending[events->count++] = event;
}

static int by_time(const void *a, const void *b)
{
	int64_t first = ((const struct sched_event *)a)->time_ns,
		second = ((const struct sched_event *)b)->time_ns;

	return (first > second) - (first < second);
}

void sched_events_take(struct sched_events *events, void (*take)(void *user, const struct sched_event *event),
		       void *user, bool last, bool *dropped)
{
	int64_t until_ns = last ? INT64_MAX : clock_now_ns(CLOCK_MONOTONIC);
	size_t given = 0;

	trace_reader_take(&events->reader, add, events);
	qsort(events->pending, events->count, sizeof(*events->pending), by_time);
	while (given < events->count && events->pending[given].time_ns <= until_ns)
		take(user, &events->pending[given++]);
	events->count -= given;
	memmove(events->pending, events->pending + given, events->count * sizeof(*events->pending));
	*dropped |= events->reader.dropped;
	events->reader.dropped = false;
}

void sched_events_switch(const struct sched_events *events, bool on)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (events->ids[i])
			trace_event_enable(events->reader.instance, names[i], on);
	}
}

void sched_events_close(struct sched_events *events)
{
	sched_events_switch(events, false);
	trace_reader_close(&events->reader);
}
