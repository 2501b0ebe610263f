// SPDX-License-Identifier: MIT
#include "agent/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "agent/file.h"
#include "base/clock.h"

#define MAGIC_V1 0x27e0eb
#define MAGIC_V2 0x63677270
#define LIST_MAX (4 << 20)
#define PASSES 16
#define RETRY_NS (NS_PER_S / 100)
#define REMOVE_TRIES 200 /* a task that ends is in its group until it is reaped */

bool cgroup_is(const char *dir)
{
	struct statfs fs;

	return !statfs(dir, &fs) && ((long)fs.f_type == MAGIC_V1 || (long)fs.f_type == MAGIC_V2);
}

/* Version 1 moves single threads, so threads of the process in other groups stay there. */
static char *members(const char *dir)
{
	char *path = NULL;

	if (asprintf(&path, "%s/tasks", dir) < 0)
		return NULL;
	if (!access(path, F_OK))
		return path;
	free(path);
	return asprintf(&path, "%s/cgroup.procs", dir) < 0 ? NULL : path;
}

static int put(const char *path, pid_t task)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;

	if (fd < 0)
		return errno;
	if (dprintf(fd, "%lld\n", (long long)task) < 0)
		error = errno;
	close(fd);
	return error;
}

int cgroup_put(const char *dir, pid_t task)
{
	char *path = members(dir);
	int error = path ? put(path, task) : ENOMEM;

	free(path);
	return error;
}

/* Passes over the list once; adds the number of moved tasks to *moved. */
static void move_listed(const char *list, const char *to, struct cgroup_moved *result)
{
	result->refused = 0;
	for (const char *at = list; *at;) {
		char *end;
		long task = strtol(at, &end, 10);
		int error;

		if (end == at)
			break;
		at = *end ? end + 1 : end;
		if (task <= 0)
			continue; /* not in this PID namespace */
		error = put(to, (pid_t)task);
		if (!error) {
			result->moved++;
		} else if (error != ESRCH) {
			if (result->refused < sizeof(result->last_errors) / sizeof(result->last_errors[0])) {
				result->last_refused[result->refused] = (pid_t)task;
				result->last_errors[result->refused] = error;
			}
			result->refused++;
		}
	}
}

int cgroup_move_all(const char *from, const char *to, struct cgroup_moved *result)
{
	char *source = members(from), *target = members(to);
	int error = source && target ? 0 : ENOMEM;
	struct bytes list;

	*result = (struct cgroup_moved){0};
	/* Each move waits once for the kernel: hundreds of tasks on a loaded machine take minutes. */
	(void)setpriority(PRIO_PROCESS, 0, -20);
	for (int pass = 0; pass < PASSES && !error; pass++) {
		size_t before = result->moved;

		error = file_read(source, LIST_MAX, &list);
		if (error)
			break;
		move_listed(list.data, target, result);
		free(list.data);
		if (result->moved == before)
			break;
	}
	free(source);
	free(target);
	return error;
}

int cgroup_remove(const char *dir)
{
	const char *slash = strrchr(dir, '/');
	char *parent = slash && slash > dir ? strndup(dir, (size_t)(slash - dir)) : NULL;
	struct cgroup_moved moved;
	int error = 0;

	if (!parent)
		return slash ? EINVAL : ENOMEM;
	for (int tries = 0; tries < REMOVE_TRIES; tries++) {
		error = rmdir(dir) ? errno : 0;
		if (error != EBUSY)
			break;
		if (!cgroup_move_all(dir, parent, &moved) && moved.moved)
			continue;
		clock_pause_ns(RETRY_NS);
	}
	free(parent);
	return error == ENOENT ? 0 : error;
}
