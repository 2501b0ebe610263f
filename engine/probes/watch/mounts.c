// SPDX-License-Identifier: MIT
#include "probes/watch/mounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *const names[], const char *name)
{
	while (*names && strcmp(*names, name))
		names++;
	return *names;
}

/* Returns where the files of a mount are; NO_PLACE: it is not in the list, so it is the kernel's own, such as
 * of sockets and of memory with a name. mounts: as in /proc/PID/mountinfo. */
static enum place place_of(FILE *mounts, long mount)
{
	static const char *const in_memory[] = {"tmpfs",  "devtmpfs", "ramfs",	 "hugetlbfs",
						"proc",	  "sysfs",    "debugfs", "tracefs",
						"devpts", "cgroup",   "cgroup2", NULL};
	static const char *const remote[] = {"9p",	 "afs",	 "ceph",     "cifs", "coda", "fuse",
					     "fuseblk",	 "gfs2", "lustre",   "nfs",  "nfs4", "ocfs2",
					     "orangefs", "smb3", "virtiofs", NULL};
	enum place place = NO_PLACE;
	char *line = NULL, *kind;
	size_t size = 0;

	while (place == NO_PLACE && getline(&line, &size, mounts) > 0) {
		if (strtol(line, NULL, 10) != mount || !(kind = strstr(line, " - ")))
			continue;
		kind += 3;
		kind[strcspn(kind, " \n")] = '\0';
		if (is_one_of(in_memory, kind))
			place = IN_MEMORY;
		else
			place = is_one_of(remote, kind) || !strncmp(kind, "fuse.", 5) ? REMOTE : LOCAL;
	}
	free(line);
	return place;
}

static FILE *open_proc(pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	return fopen(path, "re");
}

/* Returns the number of the mount of an open file; -1: it is closed. */
static long mount_of(pid_t tid, int fd)
{
	static const char key[] = "mnt_id:";
	char name[32], line[128];
	long mount = -1;
	FILE *file;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	file = open_proc(tid, name);
	while (file && mount < 0 && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, key, sizeof(key) - 1))
			mount = strtol(line + sizeof(key) - 1, NULL, 10);
	}
	if (file)
		fclose(file);
	return mount;
}

bool mounts_place(pid_t tid, pid_t owner, int fd, enum place *place)
{
	long mount = mount_of(owner, fd);
	FILE *mounts = mount < 0 ? NULL : open_proc(tid, "mountinfo");

	*place = NO_PLACE;
	if (mounts) {
		*place = place_of(mounts, mount);
		fclose(mounts);
	}
	return mount >= 0;
}
