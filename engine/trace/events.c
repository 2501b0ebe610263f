// SPDX-License-Identifier: MIT
#include "trace/events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace/instance.h"

#define WORD_MAX 100
#define PATH_MAX_LEN (WORD_MAX + 300)

struct found {
	char **names;
	unsigned int count;
};

static void add(struct found *found, const char *group, const char *event)
{
	char name[PATH_MAX_LEN];

	snprintf(name, sizeof(name), "%s/%s", group, event);
	for (unsigned int i = 0; i < found->count; i++) {
		if (!strcmp(found->names[i], name))
			return;
	}
	if (found->count < TRACE_EVENTS_MAX && (found->names[found->count] = strdup(name)))
		found->count++;
}

static bool is_event(int instance, const char *group, const char *event)
{
	char path[PATH_MAX_LEN];

	snprintf(path, sizeof(path), "events/%s/%s/format", group, event);
	return !faccessat(instance, path, R_OK, 0);
}

/* Finds events whose names end with this; "": all events. */
static void add_group(int instance, const char *group, const char *end, struct found *found)
{
	char path[PATH_MAX_LEN];
	struct dirent *entry;
	DIR *dir;
	int fd;

	snprintf(path, sizeof(path), "events/%s", group);
	fd = openat(instance, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		size_t len = strlen(entry->d_name), end_len = strlen(end);

		if (entry->d_name[0] != '.' && len >= end_len &&
		    !strcmp(entry->d_name + len - end_len, end) && is_event(instance, group, entry->d_name))
			add(found, group, entry->d_name);
	}
	closedir(dir);
}

unsigned int trace_events_find(int instance, const char *list, char *names[TRACE_EVENTS_MAX])
{
	struct found found = {.names = names};

	for (const char *at = list; *at;) {
		size_t len = strcspn(at, ",");
		char word[WORD_MAX], *event;

		if (len < sizeof(word)) {
			memcpy(word, at, len);
			word[len] = '\0';
			event = strchr(word, '/');
			if (event)
				*event++ = '\0';
			/* A group with dots in its name could lead to another folder. */
			if (strchr(word, '.') || (event && strpbrk(event, "./")))
				;
			else if (!event || event[0] == '*')
				add_group(instance, word, event ? event + 1 : "", &found);
			else if (is_event(instance, word, event))
				add(&found, word, event);
		}
		at += len + (at[len] == ',');
	}
	return found.count;
}

bool trace_event_enable(int instance, const char *name, bool on)
{
	char path[PATH_MAX_LEN];

	snprintf(path, sizeof(path), "events/%s/enable", name);
	return trace_write(instance, path, on ? "1" : "0");
}

bool trace_event_format(int instance, const char *name, char *text)
{
	char path[PATH_MAX_LEN];

	snprintf(path, sizeof(path), "events/%s/format", name);
	return trace_read(instance, path, text);
}
