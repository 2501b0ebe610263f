// SPDX-License-Identifier: MIT
#include "probes/watch/thread_filter.h"

#include <stdio.h>
#include <unistd.h>

#include "trace/instance.h"

#define RANGE_MAX 512 /* with more numbers, there may be too many other threads among them */

static bool choose(const struct thread_filter *filter, const pid_t *tids, int count)
{
	char text[16 * WATCH_THREADS_MAX];
	size_t len = 0;

	for (int i = 0; i < count && len < sizeof(text) - 16; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%d ", (int)tids[i]);
	return trace_append(filter->instance, "set_event_pid", text);
}

static void remember(struct thread_filter *filter, const pid_t *tids, int count)
{
	for (int i = 0; i < count && filter->count < WATCH_THREADS_MAX; i++)
		filter->tids[filter->count++] = tids[i];
}

/* Sets the range. Returns whether there are few enough numbers in it. */
static bool set_range(struct thread_filter *filter)
{
	filter->first = filter->last = filter->tids[0];
	for (int i = 1; i < filter->count; i++) {
		if (filter->tids[i] < filter->first)
			filter->first = filter->tids[i];
		if (filter->tids[i] > filter->last)
			filter->last = filter->tids[i];
	}
	filter->last += THREADS_LATER;
	return filter->last - filter->first < RANGE_MAX;
}

bool thread_filter_begin(struct thread_filter *filter, int instance, const pid_t *tids, int count,
			 bool ranges)
{
	*filter = (struct thread_filter){.instance = instance};
	remember(filter, tids, count);
	return (count && ranges && set_range(filter)) || thread_filter_by_kernel(filter);
}

void thread_filter_range(struct thread_filter *filter, int instance, pid_t first, pid_t last)
{
	*filter = (struct thread_filter){.instance = instance, .first = first, .last = last};
}

bool thread_filter_add(struct thread_filter *filter, const pid_t *tids, int count)
{
	bool inside = true;

	remember(filter, tids, count);
	if (filter->by_kernel) {
		choose(filter, tids, count); /* a thread that has ended meanwhile is left out */
		return false;
	}
	for (int i = 0; i < count; i++)
		inside &= tids[i] >= filter->first && tids[i] <= filter->last;
	if (inside)
		return false;
	if (!set_range(filter))
		thread_filter_by_kernel(filter);
	return true;
}

bool thread_filter_by_kernel(struct thread_filter *filter)
{
	filter->by_kernel = true;
	return choose(filter, filter->tids, filter->count);
}

bool thread_filter_write(const struct thread_filter *filter, const char *event, const char *const fields[2])
{
	char path[200], ranges[2][TRACE_RANGE_MAX], text[2 * TRACE_RANGE_MAX + 8];

	snprintf(path, sizeof(path), "events/%s/filter", event);
	if (filter->by_kernel)
		return trace_write(filter->instance, path, "0");
	trace_range(fields[0], filter->first, filter->last, getpid(), ranges[0]);
	if (!fields[1])
		return trace_write(filter->instance, path, ranges[0]);
	trace_range(fields[1], filter->first, filter->last, getpid(), ranges[1]);
	snprintf(text, sizeof(text), "(%s)||(%s)", ranges[0], ranges[1]);
	return trace_write(filter->instance, path, text);
}
