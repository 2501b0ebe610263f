// SPDX-License-Identifier: MIT
#include "ext/tire/engine/memory_left.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t tire_memory_left(void)
{
	static const char name[] = "MemAvailable:";
	int64_t bytes = -1;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, sizeof(name) - 1))
			bytes = strtoll(line + sizeof(name) - 1, NULL, 10) * 1024;
	}
	fclose(file);
	return bytes;
}
