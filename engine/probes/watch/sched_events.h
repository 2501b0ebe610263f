/* SPDX-License-Identifier: MIT */
/* Records wake-ups, switches and system calls of some threads with the kernel's tracepoints sched_waking,
 * sched_switch, sys_enter and sys_exit, in an instance of tracefs that the caller makes and removes. */
#ifndef RTGAUGE_WATCH_SCHED_EVENTS_H
#define RTGAUGE_WATCH_SCHED_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probes/watch/blocking_calls.h"
#include "trace/instance.h"
#include "trace/reader.h"

enum sched_kind { SCHED_WAKING, SCHED_SWITCH, SCHED_SYSCALL, SCHED_RETURN };

struct sched_event {
	int64_t time_ns;
	enum sched_kind kind;
	int cpu;
	pid_t current; /* the task that the CPU was running */
	bool hardirq, softirq;
	/* switch: both tasks; waking: `to` is woken; system call and return: `to` enters or leaves it */
	pid_t from, to;
	bool runnable; /* switch: `from` did not go to sleep */
	/* switch: it is stopped, or no signal can wake it: it sleeps for a disk, a page, a freezer of
	   cgroup v1 */
	bool held;
	bool sleeps;   /* switch: it sleeps, and a signal can wake it */
	bool restarts; /* return: a signal interrupted the call, which then begins again */
	char to_name[16];
	struct blocking_call call;
};

struct sched_events {
	struct trace_reader reader;
	unsigned int ids[4]; /* ids of sys_enter, sys_exit; 0: this kernel has none */
	struct trace_field flags, current, woken, from, state, to, to_name, call, arguments, result;
	struct sched_event *pending;
	size_t count;
};

/* Starts recording the events of these threads. Returns 0, or the exit status after an `error` line. */
int sched_events_open(struct sched_events *events, const char *instance, const pid_t *tids, int count);

/* Also records the events of these threads. */
void sched_events_add(const struct sched_events *events, const pid_t *tids, int count);

/* Returns whether system calls are recorded. Not every kernel can do this. */
bool sched_events_have_calls(const struct sched_events *events);

/*
 * Passes on events since the last call, in time order. Events younger than the call wait for the next call
 * (last: passes on all). *dropped: whether the kernel dropped events before some of them.
 */
void sched_events_take(struct sched_events *events, void (*take)(void *user, const struct sched_event *event),
		       void *user, bool last, bool *dropped);

/* Enables or disables recording, which is enabled at the start. */
void sched_events_switch(const struct sched_events *events, bool on);

void sched_events_close(struct sched_events *events);

#endif
