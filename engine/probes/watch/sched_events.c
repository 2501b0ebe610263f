// SPDX-License-Identifier: MIT
#include "probes/watch/sched_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "trace/events.h"
#include "trace/instance.h"
#include "trace/reader.h"
#include "trace/symbols.h"

#define BUFFER_KB 4096 /* of each CPU, at the beginning */
#define BUFFER_KB_MAX 65536
#define BUFFER_S 4 /* how long the engine may be kept from reading */
#define PENDING_MAX 131072
#define RECORD_BYTES 16				    /* of the shortest record */
#define TURN_BYTES (PENDING_MAX / 2 * RECORD_BYTES) /* as much may be left of the turn before */
#define FLAG_HARDIRQ 8				    /* include/linux/trace_events.h */
#define FLAG_SOFTIRQ 16
#define REPORTED_STATES 255 /* states of a sleeping task; the bits above say whether it was preempted */
#define ENDED_STATES 48	    /* dead, zombie */
#define HELD_STATES 14	    /* uninterruptible, stopped, traced (TASK_REPORT, include/linux/sched.h) */

static const char *const names[SCHED_KINDS] = {
	[SCHED_WAKING] = "sched/sched_waking",	   [SCHED_SWITCH] = "sched/sched_switch",
	[SCHED_TIMER] = "timer/hrtimer_start",	   [SCHED_SIGNAL] = "signal/signal_deliver",
	[SCHED_FORK] = "sched/sched_process_fork",
};

static int failed(const char *what)
{
	return error_line(STATUS_CANNOT_MEASURE, "trace", "cannot watch the program (%s: %s)", what,
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
	    !trace_find_field(text, "next_comm[16]", &events->to_name) ||
	    !trace_find_field(text, "prev_prio", &events->from_priority) ||
	    !trace_find_field(text, "next_prio", &events->to_priority))
		return false;
	events->ids[SCHED_SWITCH] = trace_event_id(text);
	if (trace_event_format(events->reader.instance, names[SCHED_TIMER], text) &&
	    trace_find_field(text, "hrtimer", &events->timer) &&
	    trace_find_field(text, "function", &events->function) &&
	    trace_find_field(text, "softexpires", &events->expiry))
		events->ids[SCHED_TIMER] = trace_event_id(text);
	if (trace_event_format(events->reader.instance, names[SCHED_SIGNAL], text) &&
	    trace_find_field(text, "sig", &events->signal) &&
	    trace_find_field(text, "sa_handler", &events->handler))
		events->ids[SCHED_SIGNAL] = trace_event_id(text);
	if (trace_event_format(events->reader.instance, names[SCHED_FORK], text) &&
	    trace_find_field(text, "child_pid", &events->child))
		events->ids[SCHED_FORK] = trace_event_id(text);
	return true;
}

/* The fields that have the numbers of an event's threads. */
static const char *const switched[2] = {"prev_pid", "next_pid"}, *const woken[2] = {"pid", NULL},
			 *const running[2] = {"common_pid", NULL};

/* Returns false with errno on failure. Where the kernel chooses, there is no filter to begin with. */
static bool filter_events(const struct sched_events *events)
{
	bool done = true;

	for (int kind = 0; kind < (int)SCHED_KINDS; kind++)
		if (events->ids[kind] && !(events->all && (kind == SCHED_SWITCH || kind == SCHED_WAKING)))
			done &= thread_filter_write(&events->threads, names[kind],
						    kind == SCHED_SWITCH   ? switched
						    : kind == SCHED_WAKING ? woken
									   : running);
	for (unsigned int i = 0; events->calls.by_name && i < events->calls.count; i++)
		done &= thread_filter_write(&events->threads, events->calls.names[i], running);
	return done;
}

/* Chooses these threads. The kernel itself chooses if there are events without a filter of their own. */
static bool choose_threads(struct sched_events *events, const pid_t *tids, int count)
{
	bool ranges = !events->points.count && (!events->calls.count || events->calls.by_name);

	if (!thread_filter_begin(&events->threads, events->reader.instance, tids, count, ranges))
		return false;
	if (events->threads.by_kernel || filter_events(events))
		return true;
	if (!thread_filter_by_kernel(&events->threads))
		return false;
	filter_events(events);
	return true;
}

static void follow(struct sched_events *events, const pid_t *tids, int count)
{
	for (int i = 0; i < count; i++) {
		unsigned int bit = (unsigned int)tids[i] % FOLLOWED_BITS;

		events->followed[bit / 64] |= UINT64_C(1) << bit % 64;
	}
}

static bool is_followed(const struct sched_events *events, int64_t tid)
{
	unsigned int bit = (unsigned int)tid % FOLLOWED_BITS;

	return events->followed[bit / 64] >> bit % 64 & 1;
}

void sched_events_add(struct sched_events *events, const pid_t *tids, int count)
{
	follow(events, tids, count);
	if (events->all)
		return;
	if (thread_filter_add(&events->threads, tids, count))
		filter_events(events);
}

bool sched_events_have_calls(const struct sched_events *events)
{
	return events->calls.count;
}

bool sched_events_can_have_all(const struct sched_events *events)
{
	return events->calls.count && events->calls.by_name && !events->points.count;
}

static void set_buffer(struct sched_events *events, int64_t kb)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)kb);
	trace_write(events->reader.instance, "buffer_size_kb", text); /* if refused, the size is kept */
	events->buffer_kb = kb;
}

bool sched_events_have_all(struct sched_events *events, size_t bytes, pid_t first, pid_t last)
{
	if (!trace_reader_keep(&events->reader, bytes))
		return false;
	if ((int64_t)bytes / 1024 > events->buffer_kb)
		set_buffer(events, (int64_t)bytes / 1024); /* the engine reads a larger one less often */
	events->all = true;
	for (int kind = SCHED_WAKING; kind <= SCHED_SWITCH; kind++) {
		char path[64];

		snprintf(path, sizeof(path), "events/%s/filter", names[kind]);
		if (!trace_write(events->reader.instance, path, "0"))
			return false;
	}
	if (events->threads.by_kernel && !trace_write(events->reader.instance, "set_event_pid", ""))
		return false;
	thread_filter_range(&events->threads, events->reader.instance, first, last);
	return filter_events(events);
}

void sched_events_program(struct sched_events *events, pid_t first, pid_t last)
{
	if (!events->all || (events->threads.first == first && events->threads.last == last))
		return;
	thread_filter_range(&events->threads, events->reader.instance, first, last);
	filter_events(events);
}

bool sched_events_has(const struct sched_events *events, const char *name)
{
	for (size_t i = 0; i < SCHED_KINDS; i++) {
		if (events->ids[i] && names[i] && !strcmp(names[i], name))
			return true;
	}
	for (unsigned int i = 0; i < events->calls.count; i++) {
		if (!strcmp(events->calls.names[i], name))
			return true;
	}
	return false;
}

static void expect_setting(const struct sched_events *events)
{
	const struct itimerspec never = {.it_value.tv_sec = INT32_MAX};

	timerfd_settime(events->set_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

bool sched_events_clock_set(struct sched_events *events, int64_t *set_ns)
{
	uint64_t expired;
	bool cancelled = events->set_fd >= 0 && read(events->set_fd, &expired, sizeof(expired)) < 0 &&
			 errno == ECANCELED;

	if (cancelled)
		expect_setting(events);
	*set_ns = clock_offsets_read(&events->offsets);
	if (!*set_ns && cancelled && events->cancel_due) { /* by the setting that was seen before */
		events->cancel_due = false;
		return false;
	}
	if (*set_ns)
		events->cancel_due = !cancelled;
	return cancelled || *set_ns;
}

static void begin_clocks(struct sched_events *events)
{
	events->set_fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (events->set_fd >= 0)
		expect_setting(events);
	clock_offsets_begin(&events->offsets);
}

void sched_events_fit_buffers(struct sched_events *events, int64_t recorded_ns)
{
	/* All events of the threads may be of one CPU. */
	int64_t bytes = events->taken_bytes, others = 0, kb;

	for (unsigned int i = 0; i < events->reader.ring_count; i++) {
		int64_t ring_bytes = events->ring_bytes[events->reader.cpus[i] % TRACE_CPUS_MAX];

		others = ring_bytes > others ? ring_bytes : others;
	}
	kb = recorded_ns > 0 ? (bytes + others) / 1024 * BUFFER_S * NS_PER_S / recorded_ns : 0;
	if (kb > BUFFER_KB_MAX)
		kb = BUFFER_KB_MAX;
	if (kb <= 2 * events->buffer_kb)
		return;
	sched_events_switch(events, false);
	set_buffer(events, kb);
}

void sched_events_count_bytes(struct sched_events *events)
{
	events->taken_bytes = events->first_ns = 0;
	memset(events->ring_bytes, 0, sizeof(events->ring_bytes));
}

int sched_events_open(struct sched_events *events, const char *instance, enum call_table table,
		      const struct point_options *points, const pid_t *tids, int count)
{
	char buffer_kb[32];
	const char *lacks;

	snprintf(buffer_kb, sizeof(buffer_kb), "%d", BUFFER_KB);
	lacks = trace_reader_open(&events->reader, instance, buffer_kb);
	events->buffer_kb = BUFFER_KB;
	if (lacks)
		return failed(lacks);
	if (points->cost && !point_events_measure(&events->points, events->reader.instance, points->cost))
		return failed("measuring what a point costs");
	if (points->cost && events->points.cost_ns > points->budget_ns)
		return error_line(
			STATUS_USAGE, "point-budget",
			"a point costs %.2f us on this machine, more than its budget of %.2f us; allow "
			"more with --point-budget, or leave out the points",
			(double)events->points.cost_ns / 1e3, (double)points->budget_ns / 1e3);
	events->table = table;
	begin_clocks(events);
	events->wakes = symbols_address("hrtimer_wakeup"); /* ends the sleep of a call whose time is over */
	/* The scheduler arms it as a deadline thread falls asleep, to take back its share of the CPU. */
	events->gives_back = symbols_address("inactive_task_timer");
	events->pending = memory_get(PENDING_MAX * sizeof(*events->pending));
	if (!events->pending)
		return failed("memory for the kernel's events");
	if (!point_events_open(&events->points, events->reader.instance, points->list))
		return failed("recording the events of the points");
	call_events_find(&events->calls, events->reader.instance, table);
	follow(events, tids, count);
	if (!read_formats(events) || !choose_threads(events, tids, count))
		return failed("the kernel's events");
	if (!call_events_enable(&events->calls, events->reader.instance, true, &lacks))
		return failed(lacks);
	for (size_t i = 0; i < SCHED_KINDS; i++) {
		if (events->ids[i] && !trace_event_enable(events->reader.instance, names[i], true))
			return failed(names[i]);
	}
	return point_events_enable(&events->points, events->reader.instance, true)
		       ? 0
		       : failed("recording the events of the points");
}

static int64_t argument(const struct sched_events *events, const unsigned char *record, size_t len,
			size_t which)
{
	size_t size = events->calls.arguments.size / 6;
	const struct trace_field field = {events->calls.arguments.offset + which * size, size};

	return trace_number(record, len, &field);
}

static bool read_switch(const struct sched_events *events, const unsigned char *record, size_t len,
			struct sched_event *event)
{
	int64_t state = trace_number(record, len, &events->state) & REPORTED_STATES;

	event->from = (pid_t)trace_number(record, len, &events->from);
	event->to = (pid_t)trace_number(record, len, &events->to);
	event->runnable = !state;
	event->held = state & HELD_STATES;
	event->ended = state & ENDED_STATES;
	event->from_priority = (int)trace_number(record, len, &events->from_priority);
	event->to_priority = (int)trace_number(record, len, &events->to_priority);
	if (events->to_name.offset + sizeof(event->to_name) <= len)
		memcpy(event->to_name, record + events->to_name.offset, sizeof(event->to_name) - 1);
	return true;
}

/* Returns false if the event says nothing about a thread. */
static bool read_event(const struct sched_events *events, const unsigned char *record, size_t len,
		       struct sched_event *event)
{
	uint64_t function;

	event->to = event->current;
	switch (event->kind) {
	case SCHED_WAKING:
		event->to = (pid_t)trace_number(record, len, &events->woken);
		return true;
	case SCHED_SWITCH:
		return read_switch(events, record, len, event);
	case SCHED_SYSCALL:
		event->call.number = trace_number(record, len, &events->calls.number);
		event->call.table = events->table;
		for (size_t i = 0; i < CALL_ARGUMENTS; i++)
			event->call.arguments[i] = (uint64_t)argument(events, record, len, i);
		return true;
	case SCHED_RETURN:
		event->result = trace_number(record, len, &events->calls.result);
		return true;
	case SCHED_TIMER: /* an interrupt arms timers of its own, whatever it interrupts */
		event->timer = (uint64_t)trace_number(record, len, &events->timer);
		event->expiry_ns = trace_number(record, len, &events->expiry);
		function = (uint64_t)trace_number(record, len, &events->function);
		if (events->wakes)
			event->use = function == events->wakes ? USE_TIME_OUT : USE_PROGRAM;
		return !event->hardirq && !event->softirq &&
		       (!events->gives_back || function != events->gives_back);
	case SCHED_SIGNAL: /* one without a handler, which may end the program */
		event->result = trace_number(record, len, &events->signal);
		return !trace_number(record, len, &events->handler);
	case SCHED_FORK:
		event->to = (pid_t)trace_number(record, len, &events->child);
		return true;
	case SCHED_INTERRUPT:
	case SCHED_POINT:
		return true;
	case SCHED_LOST:
		break;
	}
	return false;
}

/* Returns whether the record is of a thread that is followed, where the rings have all events. */
static bool is_of_a_thread(const struct sched_events *events, unsigned int kind, const unsigned char *record,
			   size_t len)
{
	if (kind == SCHED_WAKING)
		return is_followed(events, trace_number(record, len, &events->woken));
	if (kind == SCHED_SWITCH)
		return is_followed(events, trace_number(record, len, &events->from)) ||
		       is_followed(events, trace_number(record, len, &events->to));
	return is_followed(events, trace_number(record, len, &events->current));
}

static void begin_run(struct sched_events *events, int cpu)
{
	if (cpu == events->run_cpu)
		return;
	events->runs[events->run_count++] = events->count;
	events->run_cpu = cpu;
}

static void add(void *user, const unsigned char *record, size_t len, int64_t time_ns, int cpu)
{
	struct sched_events *events = user;
	struct sched_event *event = &events->pending[events->count];
	struct interrupt interrupt;
	unsigned int kind = 0;
	uint16_t id = 0;
	int point;

	if (record && len < sizeof(id))
		return;
	if (record)
		memcpy(&id, record, sizeof(id));
	if (record && events->calls.edges[id])
		kind = events->calls.edges[id] == CALL_BEGINS ? SCHED_SYSCALL : SCHED_RETURN;
	else
		while (record && kind < SCHED_KINDS && id != events->ids[kind])
			kind++;
	if (record && (!events->first_ns || time_ns < events->first_ns))
		events->first_ns = time_ns;
	if (record && events->all) {
		events->ring_bytes[cpu % TRACE_CPUS_MAX] += (int64_t)len + 4;
		if (cpu < TRACE_CPUS_MAX)
			events->reached_ns[cpu] = time_ns;
		if (!is_of_a_thread(events, kind, record, len))
			return;
	}
	point = record && kind == SCHED_KINDS ? point_events_find(&events->points, id) : -1;
	if (point >= 0) {
		kind = SCHED_POINT;
	} else if (record && kind == SCHED_KINDS) {
		if (!interrupt_events_read(&events->interrupts, id, record, len,
					   (unsigned int)trace_number(record, len, &events->flags),
					   &interrupt))
			return;
		kind = SCHED_INTERRUPT;
	}
	events->taken_bytes += (int64_t)len;
	if (events->count == PENDING_MAX) {
		events->overflowed = true;
		return;
	}
	*event = (struct sched_event){.time_ns = time_ns, .cpu = cpu, .kind = record ? kind : SCHED_LOST};
	if (!record) {
		event->expiry_ns = time_ns;
		if (cpu < TRACE_CPUS_MAX && events->reached_ns[cpu])
			event->time_ns = events->reached_ns[cpu];
		begin_run(events, cpu);
		events->count++;
		return;
	}
	event->current = (pid_t)trace_number(record, len, &events->current);
	event->hardirq = trace_number(record, len, &events->flags) & FLAG_HARDIRQ;
	event->softirq = trace_number(record, len, &events->flags) & FLAG_SOFTIRQ;
	if (event->kind == SCHED_INTERRUPT)
		event->interrupt = interrupt;
	if (event->kind == SCHED_POINT)
		event->result = point;
	if (!read_event(events, record, len, event))
		return;
	if (cpu < TRACE_CPUS_MAX)
		events->reached_ns[cpu] = time_ns;
	begin_run(events, cpu);
	events->count++;
}

/* Each run is in time order. Returns the oldest event that is left, and its run; NULL at the end. */
static struct sched_event *oldest(const struct sched_events *events, const size_t *next, const size_t *ends,
				  size_t *run)
{
	struct sched_event *found = NULL;

	for (size_t i = 0; i < events->run_count; i++) {
		struct sched_event *event = &events->pending[next[i]];

		if (next[i] < ends[i] && (!found || event->time_ns < found->time_ns)) {
			found = event;
			*run = i;
		}
	}
	return found;
}

/* Moves the events that are not passed on to the front, in time order, as one run. */
static void keep_rest(struct sched_events *events, size_t *next, const size_t *ends)
{
	struct sched_event *event, *rest;
	size_t count = 0, run;

	for (size_t i = 0; i < events->run_count; i++)
		count += ends[i] - next[i];
	rest = count ? malloc(count * sizeof(*rest)) : NULL;
	if (count && !rest) {
		events->overflowed = true;
		count = 0;
	}
	for (size_t i = 0; i < count && (event = oldest(events, next, ends, &run)); i++) {
		rest[i] = *event;
		next[run]++;
	}
	if (rest && events->pending)
		memcpy(events->pending, rest, count * sizeof(*rest));
	free(rest);
	events->count = count;
	events->run_count = count > 0;
	events->runs[0] = 0;
}

/* Passes on the events up to this time, and keeps the others. */
static void pass_on(struct sched_events *events, int64_t until_ns,
		    void (*take)(void *user, const struct sched_event *event), void *user)
{
	static size_t next[TRACE_CPUS_MAX + 2], ends[TRACE_CPUS_MAX + 2];
	struct sched_event *event;
	size_t run = 0;

	for (size_t i = 0; i < events->run_count; i++) {
		next[i] = events->runs[i];
		ends[i] = i + 1 < events->run_count ? events->runs[i + 1] : events->count;
	}
	while ((event = oldest(events, next, ends, &run)) && event->time_ns <= until_ns) {
		take(user, event);
		next[run]++;
	}
	keep_rest(events, next, ends);
}

void sched_events_take(struct sched_events *events, void (*take)(void *user, const struct sched_event *event),
		       void *user, bool last)
{
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC), taken_ns;

	do { /* in turns, so that there is room for all of them */
		events->run_cpu = -1;
		taken_ns = trace_reader_take(&events->reader, TURN_BYTES / events->reader.ring_count, add,
					     events);
		pass_on(events, taken_ns < now_ns ? taken_ns : last ? INT64_MAX : now_ns, take, user);
	} while (taken_ns < now_ns);
}

static void pass_nothing(void *user, const struct sched_event *event)
{
	(void)user;
	(void)event;
}

void sched_events_read(struct sched_events *events)
{
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC), taken_ns;

	do {
		events->run_cpu = -1;
		taken_ns = trace_reader_take(
			&events->reader,
			TURN_BYTES / (events->reader.ring_count + !events->reader.ring_count), add, events);
		pass_on(events, INT64_MIN, pass_nothing, NULL);
	} while (taken_ns < now_ns);
}

void sched_events_switch(const struct sched_events *events, bool on)
{
	const char *failing;

	for (size_t i = 0; i < SCHED_KINDS; i++) {
		if (events->ids[i])
			trace_event_enable(events->reader.instance, names[i], on);
	}
	call_events_enable(&events->calls, events->reader.instance, on, &failing);
	point_events_enable(&events->points, events->reader.instance, on);
}

bool sched_events_add_interrupts(struct sched_events *events)
{
	if (!events->all && !events->threads.by_kernel && thread_filter_by_kernel(&events->threads))
		filter_events(events);
	return interrupt_events_enable(&events->interrupts, events->reader.instance);
}

void sched_events_close(struct sched_events *events)
{
	sched_events_switch(events, false);
	call_events_close(&events->calls);
	interrupt_events_disable(&events->interrupts, events->reader.instance);
	if (events->set_fd >= 0)
		close(events->set_fd);
	trace_reader_close(&events->reader);
}
