// SPDX-License-Identifier: MIT
#include "agent/setting_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tracefs.h"
#include "rt/clock.h"

#define PREFIX "trace:"
#define BUSY_TRIES 40
#define BUSY_NS (NS_PER_S / 20)

bool setting_trace_is(const char *name)
{
	return !strncmp(name, PREFIX, strlen(PREFIX)) && tracefs_is_name(name + strlen(PREFIX));
}

/* tracefs's root, and the instance's path below it. -1 and errno. */
static int locate(const char *name, char path[128])
{
	snprintf(path, 128, "instances/%s", name + strlen(PREFIX));
	return tracefs_open();
}

int setting_trace_read(const char *name, char **value)
{
	char path[128];
	int root = locate(name, path), error = 0;
	struct stat st;

	if (root < 0)
		return errno;
	*value = NULL;
	if (!fstatat(root, path, &st, 0))
		*value = strdup("present");
	else if (errno == ENOENT)
		*value = strdup("absent");
	else
		error = errno;
	close(root);
	return error ? error : *value ? 0 : ENOMEM;
}

/* What reads from it may be ending at this moment. */
static int remove_instance(int root, const char *path)
{
	for (int i = 0; i < BUSY_TRIES; i++) {
		if (!unlinkat(root, path, AT_REMOVEDIR) || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			break;
		clock_pause_ns(BUSY_NS);
	}
	return errno;
}

int setting_trace_write(const char *name, const char *value)
{
	char path[128];
	int root = locate(name, path), error;

	if (root < 0)
		return errno;
	if (!strcmp(value, "present"))
		error = mkdirat(root, path, 0700) && errno != EEXIST ? errno : 0;
	else
		error = strcmp(value, "absent") != 0 ? EINVAL : remove_instance(root, path);
	close(root);
	return error;
}
