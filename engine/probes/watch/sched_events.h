/* SPDX-License-Identifier: MIT */
/* Records wake-ups, switches, system calls and timers of some threads with the kernel's tracepoints
 * sched_waking, sched_switch, sys_enter, sys_exit and hrtimer_start, and interrupts if asked to, in an
 * instance of tracefs that the caller makes and removes. Of system calls, only those that can wait are
 * recorded. */
#ifndef RTGAUGE_WATCH_SCHED_EVENTS_H
#define RTGAUGE_WATCH_SCHED_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probes/watch/blocking_calls.h"
#include "probes/watch/call_events.h"
#include "probes/watch/clock_offsets.h"
#include "probes/watch/interrupt_events.h"
#include "probes/watch/point_events.h"
#include "probes/watch/thread_filter.h"
#include "trace/instance.h"
#include "trace/reader.h"

enum sched_kind {
	SCHED_WAKING,
	SCHED_SWITCH,
	SCHED_SYSCALL,
	SCHED_RETURN,
	SCHED_TIMER,
	SCHED_SIGNAL,
	SCHED_FORK,
	SCHED_LOST,
	SCHED_INTERRUPT,
	SCHED_POINT
};
#define SCHED_KINDS SCHED_LOST /* of events that the kernel records */

/* Whether a timer is the time-out of a call (hrtimer_wakeup), or one that the program has. */
enum timer_use { USE_UNKNOWN, USE_TIME_OUT, USE_PROGRAM };

struct sched_event {
	int64_t time_ns;
	enum sched_kind kind;
	int cpu;
	pid_t current; /* the task that the CPU was running */
	bool hardirq, softirq;
	/* switch: both tasks; waking: `to` is woken; fork: `to` begins; else: `to` does it */
	pid_t from, to;
	bool runnable; /* switch: `from` did not go to sleep */
	/* switch: it is stopped, or no signal can wake it: it sleeps for a disk, a page, a freezer of
	   cgroup v1 */
	bool held;
	bool ended; /* switch: `from` has ended */
	int from_priority,
		to_priority; /* switch: as the kernel has them: -1 deadline, 100 and more not real-time */
	char to_name[16];
	union {
		struct blocking_call call;
		struct interrupt interrupt;
	};
	int64_t result; /* return; signal: its number; point: its place in the list */
	uint64_t timer; /* timer: what identifies it */
	enum timer_use use;
	/* timer: its earliest expiry on its own clock; lost: time_ns is the beginning of the gap, and this
	   its end */
	int64_t expiry_ns;
};

#define FOLLOWED_BITS 4096

struct sched_events {
	struct trace_reader reader;
	uint64_t followed[FOLLOWED_BITS / 64]; /* whether a number, modulo FOLLOWED_BITS, may be a thread's */
	int64_t ring_bytes[TRACE_CPUS_MAX];    /* of all records of a CPU, if there are all */
	unsigned int ids[SCHED_KINDS];	       /* ids of the events; 0: this kernel has no such event */
	struct trace_field flags, current, woken, from, state, to, to_name, from_priority, to_priority, timer,
		expiry, function, signal, handler, child;
	enum call_table table; /* of the program's system calls */
	/* Events that are not passed on yet. Each run of them is in time order: run i begins at runs[i]. */
	struct sched_event *pending;
	size_t count, runs[TRACE_CPUS_MAX + 2], run_count;
	int run_cpu;
	int64_t reached_ns[TRACE_CPUS_MAX]; /* time of the last event of each CPU */
	bool overflowed;     /* events were lost because there was no room for them; the user resets it */
	int64_t taken_bytes; /* of the threads' records, to size the buffers */
	int64_t first_ns;    /* time of the first of them; 0: none */
	int64_t buffer_kb;   /* of each CPU */
	struct clock_offsets offsets;
	struct thread_filter threads;
	struct call_events calls;
	struct interrupt_events interrupts;
	struct point_events points;
	uint64_t wakes;	     /* address of hrtimer_wakeup; 0: unknown */
	uint64_t gives_back; /* address of inactive_task_timer; 0: unknown */
	int set_fd;	     /* becomes readable soon after the wall clock was set; -1: none */
	/* The rings also have what explaining needs: all switches and wake-ups, and other events. Threads are
	   then chosen here, and other events by the range of the program's numbers. */
	bool all;
	bool cancel_due; /* the clock was set, and set_fd does not say so yet */
};

/* Starts recording the events of these threads. table: of the program's system calls. points: as in
 * point_events_open; if there are points, their cost is measured first, at the event `points->cost`. Returns
 * 0, or the exit status after an `error` line. */
int sched_events_open(struct sched_events *events, const char *instance, enum call_table table,
		      const struct point_options *points, const pid_t *tids, int count);

/* Returns whether the rings can also have what explaining needs. */
bool sched_events_can_have_all(const struct sched_events *events);

/* Keeps what is read for explaining, which adds its events to the rings. bytes: for each CPU. first, last:
 * the program's numbers. Returns false with errno on failure. */
bool sched_events_have_all(struct sched_events *events, size_t bytes, pid_t first, pid_t last);

/* Sets the range of the program's numbers, if the rings have all events. */
void sched_events_program(struct sched_events *events, pid_t first, pid_t last);

/* Returns whether this event is recorded anyway. */
bool sched_events_has(const struct sched_events *events, const char *name);

/* Reads what has come, but passes nothing on yet. */
void sched_events_read(struct sched_events *events);

/* Makes the buffers large enough for the rate of events, which were recorded for so long. If it must, it
 * disables recording, because the kernel may lose events meanwhile without a sign of it. A busy real-time
 * thread may hold this up by a second. */
void sched_events_fit_buffers(struct sched_events *events, int64_t recorded_ns);

/* Counts the bytes for this from now on. */
void sched_events_count_bytes(struct sched_events *events);

/* Returns whether the wall clock was set since the last call, and reads the clocks again. *set_ns: by how
 * much; 0: by too little to tell. */
bool sched_events_clock_set(struct sched_events *events, int64_t *set_ns);

/* Also records the events of these threads. */
void sched_events_add(struct sched_events *events, const pid_t *tids, int count);

/* Also records the interrupts of these threads. Returns false if this kernel has no such events. */
bool sched_events_add_interrupts(struct sched_events *events);

/* Returns whether system calls are recorded. Not every kernel can do this. */
bool sched_events_have_calls(const struct sched_events *events);

/* Passes on events since the last call, in time order, and gaps as SCHED_LOST. Events younger than the call
 * wait for the next call (last: passes on all). */
void sched_events_take(struct sched_events *events, void (*take)(void *user, const struct sched_event *event),
		       void *user, bool last);

/* Enables or disables recording, which is enabled at the start. */
void sched_events_switch(const struct sched_events *events, bool on);

void sched_events_close(struct sched_events *events);

#endif
