// SPDX-License-Identifier: MIT
#include "harness/steal.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpuset.h"
#include "base/memory.h"

#define TEXT_MAX 32768 /* the CPUs come first */
#define FIELD_STEAL 8
#define MS_PER_S 1000

/* Not a static variable, because these are locked in memory even if nothing is explained. */
struct counts {
	int64_t before[CPUSET_MAX], now[CPUSET_MAX];
	char text[TEXT_MAX];
};

static struct counts *counts;
static int file = -1;

/* After `cpu` come its number and the fields. */
static void take_line(const char *at)
{
	char *end;
	long cpu = strtol(at, &end, 10), value = 0;

	if (end == at || cpu < 0 || cpu >= CPUSET_MAX)
		return;
	for (int field = 1; field <= FIELD_STEAL; field++)
		value = strtol(end, &end, 10);
	counts->now[cpu] = value;
}

void steal_look(void)
{
	ssize_t len = pread(file, counts->text, TEXT_MAX - 1, 0);

	memcpy(counts->before, counts->now, sizeof(counts->before));
	counts->text[len > 0 ? len : 0] = '\0';
	for (const char *line = counts->text; line && !strncmp(line, "cpu", 3);) {
		take_line(line + 3);
		line = strchr(line, '\n');
		line += line != NULL;
	}
}

bool steal_open(void)
{
	file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	counts = file >= 0 ? memory_get(sizeof(*counts)) : NULL;
	if (!counts)
		return false;
	steal_look();
	for (int cpu = 0; cpu < CPUSET_MAX; cpu++) {
		if (counts->now[cpu])
			return true;
	}
	return false;
}

void steal_write(const char *key, struct json *j)
{
	char number[16];
	long per_s = sysconf(_SC_CLK_TCK);

	json_open(j, key, '{');
	for (int cpu = 0; cpu < CPUSET_MAX; cpu++) {
		int64_t ticks = counts->now[cpu] - counts->before[cpu];

		if (ticks <= 0)
			continue;
		snprintf(number, sizeof(number), "%d", cpu);
		json_int(j, number, ticks * MS_PER_S / per_s);
	}
	json_close(j, '}');
}

void steal_close(void)
{
	if (file >= 0)
		close(file);
	file = -1;
}
