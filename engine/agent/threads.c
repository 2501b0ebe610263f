// SPDX-License-Identifier: MIT
#include "agent/threads.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/process_tree.h"

#define TEXT_MAX 4096
#define FIELD_MINOR 10
#define FIELD_MAJOR 12
#define FIELD_PRIORITY 40
#define FIELD_POLICY 41

static bool read_text(pid_t tid, const char *file, char text[TEXT_MAX])
{
	char path[64];
	ssize_t len = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)tid, (int)tid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = read(fd, text, TEXT_MAX - 1);
		close(fd);
	}
	text[len > 0 ? len : 0] = '\0';
	return len > 0;
}

/* The same for a file that is not in the folder of threads. */
static bool read_process_text(pid_t tid, const char *file, char text[TEXT_MAX])
{
	char path[64];
	FILE *stream;
	size_t len = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, file);
	stream = fopen(path, "re");
	if (stream) {
		len = fread(text, 1, TEXT_MAX - 1, stream);
		fclose(stream);
	}
	text[len] = '\0';
	return len > 0;
}

/* The name in parentheses may contain anything, even parentheses. sscanf would add 120 KB to a static
 * program. */
bool thread_parse(const char *text, struct watched_thread *thread, struct thread_counts *counts)
{
	const char *name = strchr(text, '('), *end = strrchr(text, ')');
	size_t len;

	*thread = (struct watched_thread){.tid = (pid_t)strtol(text, NULL, 10)};
	if (thread->tid <= 0 || !name || !end || end < name)
		return false;
	len = (size_t)(end - name - 1);
	if (len >= sizeof(thread->name))
		len = sizeof(thread->name) - 1;
	memcpy(thread->name, name + 1, len);
	end++;
	for (int field = 2; *end; field++) { /* `end` is after this field */
		int64_t value = strtoll(end + 1, NULL, 10);

		if (field + 1 == FIELD_MINOR)
			counts->minor_faults = value;
		else if (field + 1 == FIELD_MAJOR)
			counts->major_faults = value;
		else if (field + 1 == FIELD_PRIORITY)
			thread->priority = (int)value;
		else if (field + 1 == FIELD_POLICY) {
			thread->policy = (int)value;
			return true;
		}
		end += 1 + strcspn(end + 1, " ");
	}
	return false;
}

static bool is_named(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = names; *at;) {
		size_t word = strcspn(at, ",");

		if (word == len && !strncmp(at, name, len))
			return true;
		at += word + (at[word] == ',');
	}
	return false;
}

static bool is_real_time(const struct watched_thread *thread)
{
	return thread->policy == SCHED_FIFO || thread->policy == SCHED_RR || thread->policy == SCHED_DEADLINE;
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	return atoi((*a)->d_name) - atoi((*b)->d_name);
}

static int is_number(const struct dirent *entry)
{
	return isdigit((unsigned char)entry->d_name[0]);
}

enum wanted { WANTED_NAMED, WANTED_REAL_TIME, WANTED_ALL };

struct choice {
	const char *names;
	enum wanted wanted;
	struct watched_thread *threads;
	int found, left_out;
};

static int rank(const struct watched_thread *thread)
{
	return thread->policy == SCHED_DEADLINE ? INT32_MAX : thread->priority;
}

/* Keeps the thread instead of the one with the lowest priority, if that is lower. */
static void displace(struct choice *c, const struct watched_thread *thread)
{
	int lowest = c->found - 1;

	for (int i = c->found - 1; i >= 0; i--) {
		if (rank(&c->threads[i]) < rank(&c->threads[lowest]))
			lowest = i;
	}
	c->left_out++;
	if (rank(thread) <= rank(&c->threads[lowest]))
		return;
	memmove(&c->threads[lowest], &c->threads[lowest + 1],
		(size_t)(c->found - 1 - lowest) * sizeof(*thread));
	c->threads[c->found - 1] = *thread;
}

static void choose(struct choice *c, pid_t tid)
{
	struct thread_counts counts;
	struct watched_thread thread;
	char text[TEXT_MAX];

	if (!read_text(tid, "stat", text) || !thread_parse(text, &thread, &counts))
		return;
	if ((c->wanted == WANTED_NAMED && !is_named(c->names, thread.name)) ||
	    (c->wanted == WANTED_REAL_TIME && !is_real_time(&thread)))
		return;
	if (c->found < WATCH_THREADS_MAX)
		c->threads[c->found++] = thread;
	else
		displace(c, &thread);
}

/* Lists the threads in the order of their numbers; -1: there is no such program. */
static int list_tasks(pid_t pid, struct dirent ***entries)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return scandir(path, entries, is_number, by_number);
}

/* Returns false if there is no such program. */
static bool choose_of(struct choice *c, pid_t pid)
{
	struct dirent **entries;
	int count = list_tasks(pid, &entries);

	if (count < 0)
		return false;
	for (int i = 0; i < count; i++) {
		choose(c, (pid_t)atoi(entries[i]->d_name));
		free(entries[i]);
	}
	free(entries);
	return true;
}

static bool choose_all(struct choice *c, pid_t pid, const pid_t *children, size_t count)
{
	bool lives = choose_of(c, pid);

	for (size_t i = 0; i < count; i++)
		choose_of(c, children[i]);
	return lives;
}

int threads_find(pid_t pid, const char *names, struct watched_thread threads[WATCH_THREADS_MAX],
		 int *left_out)
{
	struct choice c = {
		.names = names, .wanted = names ? WANTED_NAMED : WANTED_REAL_TIME, .threads = threads};
	pid_t *children;
	size_t count = process_tree_list(pid, &children);
	bool lives;

	lives = choose_all(&c, pid, children, count);
	if (lives && !c.found && !names) {
		c.wanted = WANTED_ALL;
		choose_all(&c, pid, children, count);
	}
	free(children);
	*left_out = c.left_out;
	return lives ? c.found : -1;
}

static bool add_range(pid_t pid, pid_t *first, pid_t *last)
{
	struct dirent **entries;
	int count = list_tasks(pid, &entries);

	for (int i = 0; i < count; i++) {
		pid_t tid = (pid_t)atoi(entries[i]->d_name);

		*first = !*first || tid < *first ? tid : *first;
		*last = tid > *last ? tid : *last;
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return count > 0;
}

bool threads_range(pid_t pid, pid_t *first, pid_t *last)
{
	pid_t *children;
	size_t count = process_tree_list(pid, &children);
	bool lives;

	*first = *last = 0;
	lives = add_range(pid, first, last);
	for (size_t i = 0; lives && i < count; i++)
		add_range(children[i], first, last);
	free(children);
	return lives;
}

/* The kernel cuts the name in /proc/PID/comm. */
static bool has_name(pid_t pid, const struct watched_thread *thread, const char *name)
{
	char path[64], file[512];
	const char *base;
	ssize_t len;

	if (!strcmp(thread->name, name))
		return true;
	if (strncmp(thread->name, name, sizeof(thread->name) - 1) != 0 || strlen(name) < sizeof(thread->name))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	len = readlink(path, file, sizeof(file) - 1);
	file[len > 0 ? len : 0] = '\0';
	base = strrchr(file, '/');
	return base && !strcmp(base + 1, name);
}

int threads_find_program(const char *name, pid_t *pid)
{
	struct watched_thread thread;
	struct thread_counts counts;
	struct dirent **entries;
	char text[TEXT_MAX];
	int found = 0, count = scandir("/proc", &entries, is_number, by_number);

	for (int i = 0; i < count; i++) {
		pid_t number = (pid_t)atoi(entries[i]->d_name);

		if (read_text(number, "stat", text) && thread_parse(text, &thread, &counts) &&
		    has_name(number, &thread, name)) {
			*pid = number;
			found++;
		}
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return found;
}

static int64_t number_behind(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}

bool thread_count(pid_t tid, struct thread_counts *counts)
{
	struct watched_thread thread;
	char text[TEXT_MAX];

	if (!read_text(tid, "stat", text) || !thread_parse(text, &thread, counts) ||
	    !read_text(tid, "status", text))
		return false;
	counts->voluntary_switches = number_behind(text, "\nvoluntary_ctxt_switches:");
	counts->involuntary_switches = number_behind(text, "\nnonvoluntary_ctxt_switches:");
	return true;
}

/* Copies the rest of the line behind `name`; an empty text if there is no such line. */
static void copy_behind(const char *text, const char *name, char room[PLACE_TEXT_MAX])
{
	const char *at = strstr(text, name);
	size_t len = at ? strcspn(at + strlen(name), "\n") : 0;

	len = len < PLACE_TEXT_MAX ? len : PLACE_TEXT_MAX - 1;
	if (at)
		memcpy(room, at + strlen(name), len);
	room[len] = '\0';
}

bool thread_place(pid_t tid, struct thread_place *place)
{
	struct watched_thread thread;
	struct thread_counts counts;
	char text[TEXT_MAX];

	*place = (struct thread_place){.policy = -1};
	if (!read_text(tid, "stat", text) || !thread_parse(text, &thread, &counts))
		return false;
	place->policy = thread.policy;
	place->priority = thread.priority;
	if (read_text(tid, "status", text))
		copy_behind(text, "\nCpus_allowed_list:\t", place->cpus);
	if (read_text(tid, "cgroup", text)) {
		copy_behind(text, ":cpu,cpuacct:", place->group);
		if (!place->group[0])
			copy_behind(text, ":cpu:", place->group);
		if (!place->group[0])
			copy_behind(text, "0::", place->group);
	}
	/* The kernel ignores the slack of real-time threads. */
	if (!is_real_time(&thread) && read_process_text(tid, "timerslack_ns", text))
		place->slack_ns = strtoll(text, NULL, 10);
	return true;
}

bool thread_run(pid_t tid, int64_t *cpu_ns, int64_t *slices)
{
	char text[TEXT_MAX], *end;

	if (!read_text(tid, "schedstat", text))
		return false;
	*cpu_ns = strtoll(text, &end, 10);
	strtoll(end, &end, 10);
	*slices = strtoll(end, NULL, 10);
	return *slices > 0;
}

int thread_priority(pid_t tid, int *priority)
{
	struct watched_thread thread;
	struct thread_counts counts;
	char text[TEXT_MAX];

	if (!read_text(tid, "stat", text) || !thread_parse(text, &thread, &counts))
		return -1;
	*priority = thread.priority;
	return thread.policy;
}
