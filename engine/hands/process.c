// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "hands/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hands/args.h"
#include "hands/file.h"

bool process_parse(const char *text, struct process *process)
{
	/* The name in parentheses may hold anything, parentheses too. */
	const char *rest = strrchr(text, ')');
	long long pid, parent, start;
	char state;

	if (!rest || sscanf(text, "%18lld", &pid) != 1)
		return false;
	/* 3 state, 4 ppid, ..., 22 starttime */
	if (sscanf(rest + 1, " %c %18lld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %18lld",
		   &state, &parent, &start) != 3)
		return false;
	*process = (struct process){.pid = (pid_t)pid, .parent = (pid_t)parent, .state = state, .start = start};
	return pid > 0 && pid <= INT32_MAX && parent >= 0 && parent <= INT32_MAX && start >= 0;
}

bool process_read(pid_t pid, struct process *process)
{
	char path[64];
	struct bytes bytes;
	bool good;

	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	if (pid <= 0 || file_read(path, 4096, &bytes))
		return false;
	good = process_parse(bytes.data, process);
	free(bytes.data);
	return good;
}

bool process_lives(pid_t pid, int64_t start)
{
	struct process process;

	return process_read(pid, &process) && process.start == start && process.state != 'Z' && process.state != 'X';
}

void boot_id_read(char id[BOOT_ID_SIZE])
{
	struct bytes bytes;

	strcpy(id, "unknown");
	if (file_read("/proc/sys/kernel/random/boot_id", 4096, &bytes))
		return;
	bytes.data[strcspn(bytes.data, "\n")] = '\0';
	if (args_is_id(bytes.data) && strlen(bytes.data) < BOOT_ID_SIZE)
		strcpy(id, bytes.data);
	free(bytes.data);
}
