// SPDX-License-Identifier: MIT
#include "trace/instance.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/tracefs.h"

#define PREFIX "rtgauge-" /* of the instances that rtgauge makes */
#define RECORDER_PREFIX "rtgauge-recorder-"

int trace_instance_open(int root, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "instances/%s", name);
	fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		close(fd);
		errno = EBUSY;
		return -1;
	}
	return fd;
}

/* Returns whether the instance records events. */
static bool records(int instances, const char *name)
{
	char path[TRACE_NAME_MAX + 32], text[TRACE_TEXT_MAX];

	snprintf(path, sizeof(path), "%s/events/enable", name);
	return trace_read(instances, path, text) && text[0] != '0';
}

static bool find(int root, const char *prefix, const char *own, const char *owns, char name[TRACE_NAME_MAX])
{
	int fd = openat(root, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *instances = fd < 0 ? NULL : fdopendir(fd);
	bool found = false;
	struct dirent *entry;

	while (instances && !found && (entry = readdir(instances))) {
		const char *other = entry->d_name;

		found = !strncmp(other, prefix, strlen(prefix)) && strlen(other) < TRACE_NAME_MAX &&
			(!own || strcmp(other, own) != 0) && (!owns || strcmp(other, owns) != 0) &&
			records(fd, other);
		if (found)
			memcpy(name, other, strlen(other) + 1);
	}
	if (instances)
		closedir(instances);
	return found;
}

bool trace_other(int root, const char *own, const char *owns, char name[TRACE_NAME_MAX])
{
	return find(root, PREFIX, own, owns, name);
}

bool trace_is_recorder(const char *name)
{
	return !strncmp(name, RECORDER_PREFIX, strlen(RECORDER_PREFIX));
}

bool trace_recorder(void)
{
	char name[TRACE_NAME_MAX];
	int root = tracefs_open();
	bool found;

	if (root < 0)
		return false;
	found = find(root, RECORDER_PREFIX, NULL, NULL, name);
	close(root);
	return found;
}

void trace_cpus(struct cpuset *cpus)
{
	struct cpuset present;

	if (!cpuset_online(cpus))
		cpuset_allowed(cpus);
	if (!cpuset_present(&present))
		return;
	for (int cpu = cpuset_next(&present, 0); cpu >= 0; cpu = cpuset_next(&present, (unsigned int)cpu + 1))
		cpuset_add(cpus, (unsigned int)cpu);
}

int trace_ring_open(int instance, int cpu)
{
	char path[64];

	snprintf(path, sizeof(path), "per_cpu/cpu%d/trace_pipe_raw", cpu);
	return openat(instance, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static bool write_text(int folder, const char *path, const char *text, int flags)
{
	int fd = openat(folder, path, O_WRONLY | O_CLOEXEC | flags);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return written;
}

bool trace_write(int folder, const char *path, const char *text)
{
	return write_text(folder, path, text, O_TRUNC);
}

bool trace_append(int folder, const char *path, const char *text)
{
	return write_text(folder, path, text, 0);
}

void trace_range(const char *field, pid_t first, pid_t last, pid_t but, char text[TRACE_RANGE_MAX])
{
	int len = snprintf(text, TRACE_RANGE_MAX, "%s>=%d&&%s<=%d", field, (int)first, field, (int)last);

	if (but >= first && but <= last)
		snprintf(text + len, TRACE_RANGE_MAX - (size_t)len, "&&%s!=%d", field, (int)but);
}

bool trace_read(int folder, const char *path, char text[TRACE_TEXT_MAX])
{
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got = -1;
	int error;

	while (fd >= 0 && len < TRACE_TEXT_MAX - 1 &&
	       (got = read(fd, text + len, TRACE_TEXT_MAX - 1 - len)) > 0)
		len += (size_t)got;
	error = errno;
	if (fd >= 0)
		close(fd);
	text[len] = '\0';
	errno = error;
	return fd >= 0 && got >= 0;
}

bool trace_has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
		bool begins = at == text || isspace((unsigned char)at[-1]);

		if (begins && (!at[len] || isspace((unsigned char)at[len])))
			return true;
	}
	return false;
}

bool trace_find_field(const char *format, const char *name, struct trace_field *field)
{
	char wanted[64];
	const char *at;
	char *end;

	snprintf(wanted, sizeof(wanted), " %s;\toffset:", name);
	at = strstr(format, wanted);
	if (!at)
		return false;
	field->offset = (size_t)strtoul(at + strlen(wanted), &end, 10);
	if (strncmp(end, ";\tsize:", 7) != 0)
		return false;
	field->size = (size_t)strtoul(end + 7, NULL, 10);
	return true;
}

int64_t trace_number(const unsigned char *record, size_t len, const struct trace_field *field)
{
	int64_t wide = 0;
	int32_t word = 0;

	if (field->size > len || field->offset > len - field->size)
		return 0;
	if (field->size == sizeof(wide)) {
		memcpy(&wide, record + field->offset, sizeof(wide));
		return wide;
	}
	memcpy(&word, record + field->offset, field->size < sizeof(word) ? field->size : sizeof(word));
	return word;
}

unsigned int trace_event_id(const char *format)
{
	const char *at = strstr(format, "ID:");

	return at ? (unsigned int)strtoul(at + 3, NULL, 10) : 0;
}

/* Returns the first number after the name; -1: there is none. */
static long number_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	at = at ? at + strlen(name) : NULL;
	while (at && *at && *at != '\n' && !isdigit((unsigned char)*at))
		at++;
	return at && isdigit((unsigned char)*at) ? strtol(at, NULL, 10) : -1;
}

bool trace_entries_known(const char *header_event)
{
	static const struct {
		const char *name;
		long number;
	} known[] = {
		{"\ttype_len", 5},     {"\ttime_delta", 27}, {"\tarray", 32},		{"\tpadding", 29},
		{"\ttime_extend", 30}, {"\ttime_stamp", 31}, {"data max type_len", 28},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (number_of(header_event, known[i].name) != known[i].number)
			return false;
	}
	return true;
}
