/* SPDX-License-Identifier: MIT */
/* Parses the tasks of a set, as the host writes them: one line a task, `cpu priority period execution
 * deadline offset name`, times in ns. */
#ifndef RTGAUGE_TASK_LIST_H
#define RTGAUGE_TASK_LIST_H

#include <stdint.h>

#define TASK_LIST_MAX 64
#define TASK_NAME_MAX_LEN 200

struct task_entry {
	int cpu, priority;
	int64_t period_ns, execution_ns, deadline_ns, offset_ns;
	char name[TASK_NAME_MAX_LEN + 1];
};

/* Parses text into entries, which has room for TASK_LIST_MAX. Returns their number, or -1 after an `error`
 * line that names the task and the error. */
int task_list_parse(const char *text, struct task_entry *entries);

/* Returns the share of this CPU that the tasks need, in millionths. Each task's share is rounded down. */
int64_t task_list_utilisation(const struct task_entry *entries, int count, int cpu);

#endif
