// SPDX-License-Identifier: MIT
#include "probes/watch/point_events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probes/watch/point_cost.h"
#include "trace/events.h"
#include "trace/instance.h"

#define GROUP "rtgauge/"

bool point_events_measure(struct point_events *points, int instance, const char *event)
{
	char name[POINT_EVENT_MAX];

	if (strlen(event) >= POINT_EVENT_MAX - strlen(GROUP) || strpbrk(event, "/.")) {
		errno = EINVAL;
		return false;
	}
	snprintf(name, sizeof(name), GROUP "%s", event);
	points->cost_ns = point_cost_measure(instance, name);
	return points->cost_ns >= 0;
}

bool point_events_open(struct point_events *points, int instance, const char *list)
{
	char format[TRACE_TEXT_MAX];

	points->count = 0;
	for (const char *at = list ? list : ""; *at;) {
		size_t len = strcspn(at, ",");
		char *name = points->names[points->count];

		if (points->count == EVENT_POINTS_MAX || len >= POINT_EVENT_MAX - strlen(GROUP) ||
		    memchr(at, '/', len) || memchr(at, '.', len)) {
			errno = EINVAL;
			return false;
		}
		snprintf(name, POINT_EVENT_MAX, GROUP "%.*s", (int)len, at);
		if (!trace_event_format(instance, name, format))
			return false;
		points->ids[points->count++] = trace_event_id(format);
		at += len + (at[len] == ',');
	}
	return true;
}

bool point_events_enable(const struct point_events *points, int instance, bool on)
{
	bool done = true;

	for (int i = 0; i < points->count; i++)
		done &= trace_event_enable(instance, points->names[i], on);
	return done;
}

int point_events_find(const struct point_events *points, unsigned int id)
{
	for (int i = 0; i < points->count; i++) {
		if (points->ids[i] == id)
			return i;
	}
	return -1;
}
