// SPDX-License-Identifier: MIT
#include "base/tracefs.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAGIC 0x74726163
#define NAME_MAX_LEN 64

/* linux/mount.h; the numbers are the same on all architectures (Linux 5.2). */
#ifndef SYS_fsopen
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#endif
#define FS_CLOEXEC 1
#define FS_CREATE 6

static int open_mounted(const char *path)
{
	struct statfs fs;

	if (statfs(path, &fs) || (long)fs.f_type != MAGIC)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* If it is not mounted, mount it in no folder, so that nothing on the machine changes. */
static int open_unseen(void)
{
	int mount = -1, context = (int)syscall(SYS_fsopen, "tracefs", FS_CLOEXEC);

	if (context < 0)
		return -1;
	if (!syscall(SYS_fsconfig, context, FS_CREATE, NULL, NULL, 0))
		mount = (int)syscall(SYS_fsmount, context, FS_CLOEXEC, 0);
	close(context);
	return mount;
}

int tracefs_open(void)
{
	int root = open_mounted("/sys/kernel/tracing");

	if (root < 0)
		root = open_mounted("/sys/kernel/debug/tracing");
	return root < 0 ? open_unseen() : root;
}

bool tracefs_is_name(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return len && len <= NAME_MAX_LEN && !name[len];
}
