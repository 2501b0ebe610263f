// SPDX-License-Identifier: MIT
#include "base/cpuset.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void cpuset_clear(struct cpuset *set)
{
	memset(set, 0, sizeof(*set));
}

void cpuset_add(struct cpuset *set, unsigned int cpu)
{
	set->word[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

bool cpuset_has(const struct cpuset *set, unsigned int cpu)
{
	return cpu < CPUSET_MAX && (set->word[cpu / 64] >> (cpu % 64) & 1);
}

unsigned int cpuset_count(const struct cpuset *set)
{
	unsigned int count = 0;

	for (size_t i = 0; i < CPUSET_MAX / 64; i++)
		count += (unsigned int)__builtin_popcountll(set->word[i]);
	return count;
}

int cpuset_next(const struct cpuset *set, unsigned int from)
{
	for (unsigned int cpu = from; cpu < CPUSET_MAX; cpu++) {
		if (cpuset_has(set, cpu))
			return (int)cpu;
	}
	return -1;
}

static bool parse_number(const char **text, unsigned int *number)
{
	const char *s = *text;
	unsigned int value = 0;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		value = value * 10 + (unsigned int)(*s - '0');
		if (value >= CPUSET_MAX)
			return false;
	}
	*text = s;
	*number = value;
	return true;
}

bool cpuset_parse(struct cpuset *set, const char *text)
{
	unsigned int first, last;

	cpuset_clear(set);
	if (*text == '\0' || !strcmp(text, "\n"))
		return true;
	for (;;) {
		if (!parse_number(&text, &first))
			return false;
		last = first;
		if (*text == '-') {
			text++;
			if (!parse_number(&text, &last) || last < first)
				return false;
		}
		for (unsigned int cpu = first; cpu <= last; cpu++)
			cpuset_add(set, cpu);
		if (*text == '\0' || !strcmp(text, "\n"))
			return true;
		if (*text++ != ',')
			return false;
	}
}

char *cpuset_format(const struct cpuset *set, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (int first = cpuset_next(set, 0); first >= 0;) {
		int last = first, n;

		while (cpuset_has(set, (unsigned int)last + 1))
			last++;
		if (first == last)
			n = snprintf(text + len, size - len, "%s%d", len ? "," : "", first);
		else
			n = snprintf(text + len, size - len, "%s%d-%d", len ? "," : "", first, last);
		if ((size_t)n >= size - len) {
			text[len] = '\0';
			break;
		}
		len += (size_t)n;
		first = cpuset_next(set, (unsigned int)last + 1);
	}
	return text;
}

static bool read_list(const char *path, struct cpuset *set)
{
	char text[4096];
	FILE *file = fopen(path, "re");
	bool ok;

	if (!file)
		return false;
	ok = fgets(text, sizeof(text), file) && cpuset_parse(set, text);
	fclose(file);
	return ok;
}

bool cpuset_online(struct cpuset *set)
{
	return read_list("/sys/devices/system/cpu/online", set);
}

bool cpuset_present(struct cpuset *set)
{
	return read_list("/sys/devices/system/cpu/present", set);
}

bool cpuset_isolated(struct cpuset *set)
{
	return read_list("/sys/devices/system/cpu/isolated", set);
}

bool cpuset_allowed(struct cpuset *set)
{
	long size;

	/* Use the system call itself, because the C library's cpu_set_t ends at 1024 CPUs. */
	cpuset_clear(set);
	size = syscall(SYS_sched_getaffinity, 0, sizeof(set->word), set->word);
	return size > 0;
}

int cpuset_pin(pid_t tid, const struct cpuset *set)
{
	return syscall(SYS_sched_setaffinity, tid, sizeof(set->word), set->word) ? errno : 0;
}
