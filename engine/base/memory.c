// SPDX-License-Identifier: MIT
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cache_line.h"

int memory_lock(void)
{
	return mlockall(MCL_CURRENT | MCL_FUTURE) ? errno : 0;
}

void *memory_get(size_t size)
{
	void *memory;

	size = (size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	memory = aligned_alloc(CACHE_LINE, size);
	if (memory)
		memset(memory, 0, size);
	return memory;
}
