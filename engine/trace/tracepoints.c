// SPDX-License-Identifier: MIT
#include "trace/tracepoints.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DYNAMIC_EVENTS "dynamic_events"

/* Each tracepoint with the arguments to record, by their names in include/trace/events/sched.h. */
static const struct {
	const char *name, *arguments;
} tracepoints[] = {
	{"sched_dl_throttle", "dl_se cpu type"},     {"sched_dl_replenish", "dl_se cpu type"},
	{"sched_dl_server_start", "dl_se cpu type"}, {"sched_dl_server_stop", "dl_se cpu type"},
	{"sched_set_need_resched", "cpu tif"},
};

void tracepoints_group(const char *instance, char group[TRACE_NAME_MAX])
{
	snprintf(group, TRACE_NAME_MAX, "%s", instance);
	for (char *at = group; *at; at++) {
		if (*at == '-') /* the name of a group is an identifier of C */
			*at = '_';
	}
}

void tracepoints_create(int root, const char *instance)
{
	char group[TRACE_NAME_MAX], line[256];

	tracepoints_group(instance, group);
	for (size_t i = 0; i < sizeof(tracepoints) / sizeof(*tracepoints); i++) {
		snprintf(line, sizeof(line), "t:%s/%s %s_tp %s\n", group, tracepoints[i].name,
			 tracepoints[i].name, tracepoints[i].arguments);
		trace_append(root, DYNAMIC_EVENTS, line); /* fails if the kernel lacks it */
	}
}

bool tracepoints_exist(int root, const char *instance)
{
	char group[TRACE_NAME_MAX], path[TRACE_NAME_MAX + 8];

	tracepoints_group(instance, group);
	snprintf(path, sizeof(path), "events/%s", group);
	return !faccessat(root, path, F_OK, 0);
}

int tracepoints_remove(int root, const char *instance)
{
	char group[TRACE_NAME_MAX], line[TRACE_NAME_MAX + 8];

	if (!tracepoints_exist(root, instance))
		return 0;
	tracepoints_group(instance, group);
	snprintf(line, sizeof(line), "-:%s/\n", group);
	return trace_append(root, DYNAMIC_EVENTS, line) || errno == ENOENT ? 0 : errno;
}
