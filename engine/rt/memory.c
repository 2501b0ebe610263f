// SPDX-License-Identifier: MIT
#include "rt/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

int memory_lock(void)
{
	return mlockall(MCL_CURRENT | MCL_FUTURE) ? errno : 0;
}

bool memory_limited(void)
{
	struct rlimit limit = {0};

	return geteuid() && !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

char *memory_refusal(int error, char *text, size_t size)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if ((error == EPERM || error == ENOMEM || error == EAGAIN) && limit.rlim_cur != RLIM_INFINITY)
		snprintf(
			text, size,
			"memory cannot be locked: the limit of this user (RLIMIT_MEMLOCK) is %llu KiB; raise memlock in /etc/security/limits.conf, run as root, or measure with --memory-lock off",
			(unsigned long long)limit.rlim_cur / 1024);
	else
		snprintf(text, size, "memory cannot be locked: %s", strerror(error));
	return text;
}

void *memory_get(size_t size)
{
	void *memory;

	size = (size + 63) & ~(size_t)63;
	memory = aligned_alloc(64, size);
	if (memory)
		memset(memory, 0, size);
	return memory;
}
