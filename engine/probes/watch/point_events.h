/* SPDX-License-Identifier: MIT */
/* Events at instructions of the watched program (uprobes), which the caller makes and removes
 * (agent/setting_kind.h, `point:EVENT`). */
#ifndef RTGAUGE_WATCH_POINT_EVENTS_H
#define RTGAUGE_WATCH_POINT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define EVENT_POINTS_MAX 16
#define POINT_EVENT_MAX 96

struct point_options {
	const char *list, *cost; /* events of the group, separated by commas; the event that shows the cost */
	int64_t budget_ns;	 /* what a point may cost */
};

struct point_events {
	char names[EVENT_POINTS_MAX][POINT_EVENT_MAX]; /* group/event */
	unsigned int ids[EVENT_POINTS_MAX];
	int count;
	int64_t cost_ns; /* what one of them costs */
};

/* Measures what a point costs. No event of the instance may be on. Returns false with errno on failure. */
bool point_events_measure(struct point_events *points, int instance, const char *event);

/* Finds the events. list: their names, separated by commas; NULL: none. Returns false with errno if there are
 * too many or an event is missing. */
bool point_events_open(struct point_events *points, int instance, const char *list);

/* Lets the instance record them or not. Returns false with errno on failure. */
bool point_events_enable(const struct point_events *points, int instance, bool on);

/* Returns the place in the list of the event with this id; -1: it is another event. */
int point_events_find(const struct point_events *points, unsigned int id);

#endif
