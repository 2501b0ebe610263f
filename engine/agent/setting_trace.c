// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/setting_kind.h"
#include "base/clock.h"
#include "base/tracefs.h"
#include "trace/instance.h"
#include "trace/tracepoints.h"

#define PREFIX "trace:"
#define OSNOISE "osnoise:"
#define WORKLOAD OSNOISE "workload"
#define OPTIONS "options"
#define OPTION "OSNOISE_WORKLOAD"
#define BUSY_TRIES 40
#define BUSY_NS (NS_PER_S / 20)

static bool is_osnoise(const char *name)
{
	return !strncmp(name, OSNOISE, strlen(OSNOISE));
}

static bool is_trace(const char *name)
{
	return (is_osnoise(name) && tracefs_is_name(name + strlen(OSNOISE))) ||
	       (!strncmp(name, PREFIX, strlen(PREFIX)) && tracefs_is_name(name + strlen(PREFIX)));
}

static int read_osnoise(const char *name, char **value)
{
	char path[128], text[TRACE_TEXT_MAX];
	int root = tracefs_open(), error;
	bool is_workload = !strcmp(name, WORKLOAD);

	if (root < 0)
		return errno;
	snprintf(path, sizeof(path), "osnoise/%s", is_workload ? OPTIONS : name + strlen(OSNOISE));
	error = trace_read(root, path, text) ? 0 : errno;
	close(root);
	if (error)
		return error;
	text[strcspn(text, "\n")] = '\0';
	if (is_workload)
		*value = strdup(trace_has_word(text, OPTION) ? "on" : "off");
	else
		*value = strdup(text);
	return *value ? 0 : ENOMEM;
}

static int write_osnoise(const char *name, const char *value)
{
	char path[128];
	int root, error;
	bool is_workload = !strcmp(name, WORKLOAD);

	if (is_workload && strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return EINVAL;
	root = tracefs_open();
	if (root < 0)
		return errno;
	snprintf(path, sizeof(path), "osnoise/%s", is_workload ? OPTIONS : name + strlen(OSNOISE));
	if (is_workload)
		value = !strcmp(value, "on") ? OPTION : "NO_" OPTION;
	error = trace_write(root, path, value) ? 0 : errno;
	close(root);
	return error;
}

/* Opens the root of tracefs, and writes the instance's path below it. Returns 0 or an errno. */
static int locate(const char *name, int *root, char path[128])
{
	snprintf(path, 128, "instances/%s", name + strlen(PREFIX));
	*root = tracefs_open();
	return *root < 0 ? errno : 0;
}

static int read_setting(const char *name, char **value)
{
	char path[128];
	int root, error;
	struct stat st;

	if (is_osnoise(name))
		return read_osnoise(name, value);
	error = locate(name, &root, path);
	if (error)
		return error;
	if (tracepoints_exist(root, name + strlen(PREFIX)) || !fstatat(root, path, &st, 0))
		*value = strdup("present");
	else if (errno == ENOENT)
		*value = strdup("absent");
	else
		error = errno;
	close(root);
	return error ? error : *value ? 0 : ENOMEM;
}

static int remove_once(int root, const char *path, const char *instance)
{
	if (unlinkat(root, path, AT_REMOVEDIR) && errno != ENOENT)
		return errno;
	return tracepoints_remove(root, instance);
}

/* Removes the instance and its dynamic events. Its last reader may be ending at this moment. */
static int remove_instance(int root, const char *path, const char *instance)
{
	int error = EBUSY;

	for (int i = 0; error == EBUSY && i < BUSY_TRIES; i++) {
		if (i)
			clock_pause_ns(BUSY_NS);
		error = remove_once(root, path, instance);
	}
	return error;
}

static bool records(int folder, const char *path)
{
	char text[TRACE_TEXT_MAX];

	return !trace_read(folder, path, text) || text[0] != '0';
}

static bool any_records(int root)
{
	int fd = openat(root, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool any = !dir || records(root, "events/enable");
	struct dirent *entry;
	char path[300];

	while (!any && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/events/enable", entry->d_name);
		any = entry->d_name[0] != '.' && records(fd, path);
	}
	if (dir)
		closedir(dir);
	return any;
}

/*
 * The kernel notes both tasks' names at each switch. This costs as much as an event, and the engine does
 * not read them. The option belongs to the instance only while no event of any instance is on. Otherwise
 * the kernel switches it for all instances (trace_event_enable_cmd_record), so it stays unchanged.
 */
static void leave_names(int root, const char *path)
{
	char options[160];

	snprintf(options, sizeof(options), "%s/trace_options", path);
	if (!any_records(root))
		trace_write(root, options, "norecord-cmd");
}

static int write_setting(const char *name, const char *value)
{
	char path[128];
	int root, error;

	if (is_osnoise(name))
		return write_osnoise(name, value);
	error = locate(name, &root, path);
	if (error)
		return error;
	if (!strcmp(value, "present")) {
		error = mkdirat(root, path, 0700) && errno != EEXIST ? errno : 0;
		if (!error)
			leave_names(root, path);
	} else
		error = strcmp(value, "absent") != 0 ? EINVAL
						     : remove_instance(root, path, name + strlen(PREFIX));
	close(root);
	return error;
}

const struct setting_kind setting_trace = {is_trace, read_setting, write_setting};
