// SPDX-License-Identifier: MIT
#include "rt/interrupts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "rt/runtime.h"

#define TEXT_MAX ((size_t)1 << 22)

/* Parses the number after blanks; NULL: there is no number. */
static const char *number(const char *at, int64_t *value)
{
	int64_t n = 0;

	while (*at == ' ')
		at++;
	if (*at < '0' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++)
		n = (int64_t)((uint64_t)n * 10 + (uint64_t)(*at - '0'));
	*value = n;
	return at;
}

/* A line with fewer columns (ERR, MIS) has no CPUs. */
int64_t interrupts_sum(const char *text, int column)
{
	uint64_t sum = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *at;
		int64_t value = 0;

		if (*line == '\n')
			line++;
		at = line + strcspn(line, ":\n");
		if (*at != ':')
			continue;
		at++;
		for (int c = 0; at && c <= column; c++)
			at = number(at, &value);
		if (at)
			sum += (uint64_t)value;
	}
	return (int64_t)sum;
}

/* Reads the whole file. Returns -1 if that is impossible. */
static ssize_t read_text(struct interrupts *interrupts)
{
	size_t got = 0;

	while (got < interrupts->size - 1) {
		ssize_t n =
			pread(interrupts->fd, interrupts->text + got, interrupts->size - 1 - got, (off_t)got);

		if (n < 0)
			return -1;
		if (n == 0) {
			interrupts->text[got] = '\0';
			return (ssize_t)got;
		}
		got += (size_t)n;
	}
	return -1;
}

/* " CPU0 CPU1": the online CPUs. */
static int find_column(const char *text, int cpu)
{
	int column = 0;

	for (const char *at = text; *at && *at != '\n'; column++) {
		const char *name = strstr(at, "CPU");
		const char *line_end = strchr(at, '\n');

		if (!name || (line_end && name > line_end))
			return -1;
		if (strtol(name + 3, NULL, 10) == cpu)
			return column;
		at = name + 3;
	}
	return -1;
}

int interrupts_open(struct interrupts *interrupts, int cpu)
{
	if (RUNTIME_IS_COKERNEL)
		return EOPNOTSUPP; /* reading the counts would move a thread to Linux */
	interrupts->fd = open("/proc/interrupts", O_RDONLY | O_CLOEXEC);
	if (interrupts->fd < 0)
		return errno;
	for (interrupts->size = 16384; interrupts->size <= TEXT_MAX; interrupts->size *= 4) {
		interrupts->text = memory_get(interrupts->size);
		if (!interrupts->text)
			return ENOMEM;
		/* Allocates twice the present size, because numbers grow. */
		if (read_text(interrupts) >= 0 && strlen(interrupts->text) < interrupts->size / 2) {
			interrupts->column = find_column(interrupts->text, cpu);
			return interrupts->column < 0 ? ENODATA : 0;
		}
	}
	return E2BIG;
}

int64_t interrupts_read(struct interrupts *interrupts)
{
	return read_text(interrupts) < 0 ? -1 : interrupts_sum(interrupts->text, interrupts->column);
}
