// SPDX-License-Identifier: MIT
#include "rt/cpu_holder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define CANDIDATES_MAX 64
#define LOOK_NS (NS_PER_S / 5)

/* Parses the numbers after the name, from field 3 on (proc(5)), without sscanf, which would add 120 KB to
 * a static program. */
enum field {
	FIELD_STATE = 3,
	FIELD_USER = 14,
	FIELD_SYSTEM = 15,
	FIELD_CPU = 39,
	FIELD_PRIORITY,
	FIELD_POLICY
};

bool thread_stat_parse(const char *line, struct thread_stat *stat)
{
	const char *open = strchr(line, '('), *close = strrchr(line, ')'), *at;
	size_t length;
	int field = FIELD_STATE;

	if (!open || !close || close < open || close[1] != ' ')
		return false;
	length = (size_t)(close - open - 1);
	if (length >= sizeof(stat->name))
		length = sizeof(stat->name) - 1;
	memcpy(stat->name, open + 1, length);
	stat->name[length] = '\0';
	stat->used_ticks = 0;
	for (at = close + 2; *at; at += strcspn(at, " "), at += *at == ' ', field++) {
		long long value = strtoll(at, NULL, 10);

		if (field == FIELD_STATE)
			stat->state = *at;
		else if (field == FIELD_USER || field == FIELD_SYSTEM)
			stat->used_ticks += value;
		else if (field == FIELD_CPU)
			stat->cpu = (int)value;
		else if (field == FIELD_PRIORITY)
			stat->priority = (int)value;
		else if (field == FIELD_POLICY)
			stat->policy = (int)value;
	}
	return field > FIELD_POLICY;
}

static bool read_stat(const char *path, struct thread_stat *stat)
{
	char line[1024];
	ssize_t length;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	length = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (length <= 0)
		return false;
	line[length] = '\0';
	return thread_stat_parse(line, stat);
}

static bool read_thread(pid_t pid, pid_t tid, struct thread_stat *stat)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	stat->pid = pid;
	stat->tid = tid;
	return read_stat(path, stat);
}

bool thread_stat_own(pid_t tid, struct thread_stat *stat)
{
	return read_thread(getpid(), tid, stat);
}

/* Adds the threads of one process that are ready to run on the CPU. */
static size_t add_threads(pid_t pid, int cpu, struct thread_stat *found, size_t count)
{
	char path[64];
	DIR *tasks;
	const struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && count < CANDIDATES_MAX && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && read_thread(pid, tid, &found[count]) && found[count].state == 'R' &&
		    found[count].cpu == cpu)
			count++;
	}
	if (tasks)
		closedir(tasks);
	return count;
}

static size_t find_ready(int cpu, struct thread_stat *found)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	size_t count = 0;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && pid != getpid())
			count = add_threads(pid, cpu, found, count);
	}
	if (proc)
		closedir(proc);
	return count;
}

bool cpu_holder_find(int cpu, struct thread_stat *holder)
{
	static struct thread_stat ready[CANDIDATES_MAX]; /* only the watchdog or the first thread looks */
	size_t count = find_ready(cpu, ready);
	long long most = 0;

	clock_pause_ns(LOOK_NS);
	for (size_t i = 0; i < count; i++) {
		struct thread_stat later;

		if (!read_thread(ready[i].pid, ready[i].tid, &later))
			continue;
		if (later.used_ticks - ready[i].used_ticks > most) {
			most = later.used_ticks - ready[i].used_ticks;
			*holder = later;
		}
	}
	return most > 0;
}

static const char *policy_text(int policy)
{
	switch (policy) {
	case SCHED_FIFO:
		return "FIFO";
	case SCHED_RR:
		return "RR";
	case 6:
		return "DEADLINE";
	default:
		return "no real-time policy";
	}
}

const char *cpu_holder_text(const struct thread_stat *holder, char *text, size_t size)
{
	char thread[32] = "", priority[16] = "";

	if (holder->tid != holder->pid)
		snprintf(thread, sizeof(thread), ", thread %d", holder->tid);
	if (holder->priority)
		snprintf(priority, sizeof(priority), " %d", holder->priority);
	snprintf(text, size, "%s (pid %d%s, %s%s)", holder->name, holder->pid, thread,
		 policy_text(holder->policy), priority);
	return text;
}
