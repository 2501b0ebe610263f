/* SPDX-License-Identifier: MIT */
/*
 * Which threads an instance of tracefs records. The kernel's own choice (set_event_pid) needs eight more
 * hooks at each wake-up and switch. Filters of the events cost less, if the numbers of the threads are close
 * to each other: they pass a range of numbers, in which there may be other threads, but not the engine.
 */
#ifndef RTGAUGE_WATCH_THREAD_FILTER_H
#define RTGAUGE_WATCH_THREAD_FILTER_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/threads.h"

#define THREADS_LATER 64 /* threads that begin later usually have the next numbers */

struct thread_filter {
	int instance;
	bool by_kernel; /* set_event_pid chooses, else the range of numbers */
	pid_t first, last, tids[WATCH_THREADS_MAX];
	int count;
};

/* Begins with these threads. ranges: whether filters of events are possible. Returns false with errno on
 * failure. */
bool thread_filter_begin(struct thread_filter *filter, int instance, const pid_t *tids, int count,
			 bool ranges);

/* Begins with a range of numbers, which may be as wide as a program's. */
void thread_filter_range(struct thread_filter *filter, int instance, pid_t first, pid_t last);

/* Adds threads. Returns whether the filters of all events have to be written again. */
bool thread_filter_add(struct thread_filter *filter, const pid_t *tids, int count);

/* The kernel chooses from now on. The filters of all events have to be written again. */
bool thread_filter_by_kernel(struct thread_filter *filter);

/* Writes the filter of an event. fields: up to two fields with numbers of threads, the second one may be
 * NULL. Returns false with errno on failure. */
bool thread_filter_write(const struct thread_filter *filter, const char *event, const char *const fields[2]);

#endif
