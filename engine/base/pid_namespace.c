// SPDX-License-Identifier: MIT
#include "base/pid_namespace.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIRST "pid:[4026531836]" /* PROC_PID_INIT_INO (include/linux/proc_ns.h) */

/* Returns how many numbers this process has in /proc: one for each namespace, from that of /proc inwards. */
static int numbers_in_proc(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	int count = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "NSpid:", strlen("NSpid:")) != 0)
			continue;
		for (const char *at = line; (at = strchr(at, '\t')); at++)
			count++;
	}
	if (file)
		fclose(file);
	return count;
}

bool pids_are_the_kernels(void)
{
	char name[64];
	ssize_t len = readlink("/proc/self/ns/pid", name, sizeof(name) - 1);

	if (len < 0)
		return true; /* a kernel without namespaces */
	name[len] = '\0';
	return !strcmp(name, FIRST) || numbers_in_proc() > 1;
}
