// SPDX-License-Identifier: MIT
#include "ext/schedulability/engine/task_list.h"

#include <stdbool.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/error.h"
#include "base/options.h"

#define LONGEST_NS (INT64_C(3600) * 1000000000)

static int wrong(int number, const char *what)
{
	error_line(STATUS_USAGE, "task-set", "task %d: %s", number, what);
	return -1;
}

/* Parses the next word of a line as a number. Returns false if there is none. */
static bool number(const char **at, const char *end, int64_t *value)
{
	char word[32];
	size_t length = 0;

	while (*at < end && **at != ' ' && length < sizeof(word) - 1)
		word[length++] = *(*at)++;
	word[length] = '\0';
	if (*at >= end || **at != ' ')
		return false;
	++*at;
	return options_int(word, value);
}

static int parse_line(const char *line, const char *end, struct task_entry *entry, int n)
{
	int64_t cpu, priority;
	const char *at = line;

	if (!number(&at, end, &cpu) || !number(&at, end, &priority) || !number(&at, end, &entry->period_ns) ||
	    !number(&at, end, &entry->execution_ns) || !number(&at, end, &entry->deadline_ns) ||
	    !number(&at, end, &entry->offset_ns))
		return wrong(n, "write `cpu priority period execution deadline offset name`, times in ns");
	if (at == end || end - at > TASK_NAME_MAX_LEN)
		return wrong(n, "its name does not have 1 ... 200 bytes");
	if (cpu < 0 || cpu >= CPUSET_MAX)
		return wrong(n, "its CPU is out of range");
	if (priority < 1 || priority > 99)
		return wrong(n, "its priority is not in 1 ... 99");
	if (entry->period_ns < 1000 || entry->period_ns > LONGEST_NS)
		return wrong(n, "its period is not in 1 us ... 1 h");
	if (entry->deadline_ns < 1 || entry->deadline_ns > LONGEST_NS)
		return wrong(n, "its deadline is not in 1 ns ... 1 h");
	if (entry->execution_ns < 1 || entry->execution_ns > entry->deadline_ns)
		return wrong(n, "its execution time is not in 1 ns ... its deadline");
	if (entry->offset_ns < 0 || entry->offset_ns > LONGEST_NS)
		return wrong(n, "its offset is not in 0 ... 1 h");
	entry->cpu = (int)cpu;
	entry->priority = (int)priority;
	memcpy(entry->name, at, (size_t)(end - at));
	entry->name[end - at] = '\0';
	return 0;
}

static int check_against(const struct task_entry *entries, int count)
{
	for (int i = 0; i < count - 1; i++) {
		if (!strcmp(entries[i].name, entries[count - 1].name))
			return wrong(count, "another task has this name");
		if (entries[i].cpu == entries[count - 1].cpu &&
		    entries[i].priority == entries[count - 1].priority)
			return wrong(count, "another task of this CPU has this priority");
	}
	return 0;
}

int task_list_parse(const char *text, struct task_entry *entries)
{
	int count = 0;

	while (*text) {
		const char *end = text + strcspn(text, "\n");

		if (count == TASK_LIST_MAX)
			return wrong(count + 1, "at most 64 tasks can be run");
		if (parse_line(text, end, &entries[count], count + 1))
			return -1;
		count++;
		if (check_against(entries, count))
			return -1;
		text = *end ? end + 1 : end;
	}
	if (!count) {
		error_line(STATUS_USAGE, "task-set", "the tasks are missing; give them with --tasks");
		return -1;
	}
	return count;
}

int64_t task_list_utilisation(const struct task_entry *entries, int count, int cpu)
{
	int64_t millionths = 0;

	for (int i = 0; i < count; i++) {
		if (entries[i].cpu == cpu) /* at most an hour, so the product fits */
			millionths += entries[i].execution_ns * 1000000 / entries[i].period_ns;
	}
	return millionths;
}
