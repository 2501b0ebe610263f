// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/file.h"
#include "agent/setting_kind.h"
#include "base/clock.h"
#include "base/tracefs.h"
#include "trace/instance.h"

#define PREFIX "point:"
#define ABSENT "absent"
#define GROUP "rtgauge" /* of the events */
#define FILE_NAME "uprobe_events"
#define FILE_MAX (1U << 20)
#define VALUE_MAX 4096
#define BUSY_TRIES 40
#define BUSY_NS (NS_PER_S / 20)

static bool is_point(const char *name)
{
	const char *event = name + strlen(PREFIX);

	return !strncmp(name, PREFIX, strlen(PREFIX)) && *event && strlen(event) <= 64 &&
	       !isdigit((unsigned char)*event) &&
	       strspn(event, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(event);
}

/* The kernel pads the offset with zeros. malloc'ed; NULL: it is not FILE:0xOFFSET. */
static char *tidied(const char *value, size_t len)
{
	const char *colon = memrchr(value, ':', len);
	char *text = NULL, *end;
	unsigned long long offset;

	if (!colon || value[0] != '/' || strncmp(colon, ":0x", 3) != 0 || len >= VALUE_MAX)
		return NULL;
	for (const char *c = value; c < colon; c++) {
		if (isspace((unsigned char)*c) || iscntrl((unsigned char)*c))
			return NULL;
	}
	offset = strtoull(colon + 1, &end, 16);
	if (asprintf(&text, "%.*s:0x%llx%.*s", (int)(colon - value), value, offset, (int)(value + len - end),
		     end) < 0)
		return NULL;
	return text;
}

/* Finds "p:GROUP/EVENT FILE:OFFSET". */
static char *find(const char *list, const char *event)
{
	char begin[128];
	size_t len = (size_t)snprintf(begin, sizeof(begin), "p:" GROUP "/%s ", event);

	for (const char *line = list; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
		if (!strncmp(line, begin, len))
			return tidied(line + len, strcspn(line + len, "\n"));
	}
	return strdup(ABSENT);
}

static int read_point(const char *name, char **value)
{
	int root = tracefs_open(), fd, error;
	struct bytes bytes = {0};

	if (root < 0)
		return errno;
	fd = openat(root, FILE_NAME, O_RDONLY | O_CLOEXEC);
	error = fd < 0 ? errno : file_read_fd(fd, FILE_MAX, &bytes);
	if (fd >= 0)
		close(fd);
	close(root);
	if (error)
		return error == ENOENT ? ENOTSUP : error; /* without CONFIG_UPROBE_EVENTS */
	*value = find(bytes.data ? bytes.data : "", name + strlen(PREFIX));
	free(bytes.data);
	return *value ? 0 : ENOMEM;
}

/* An instance that records the event may be ending at this moment. */
static int remove_point(int root, const char *event)
{
	char line[128];

	snprintf(line, sizeof(line), "-:" GROUP "/%s\n", event);
	for (int i = 0; i < BUSY_TRIES; i++) {
		if (trace_append(root, FILE_NAME, line) || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			break;
		clock_pause_ns(BUSY_NS);
	}
	return errno;
}

static int write_point(const char *name, const char *value)
{
	const char *event = name + strlen(PREFIX);
	bool absent = !strcmp(value, ABSENT);
	char *place = absent ? NULL : tidied(value, strlen(value)), *line = NULL;
	int root, error = absent || place ? 0 : EINVAL;

	root = error ? -1 : tracefs_open();
	if (!error && root < 0)
		error = errno;
	if (!error)
		error = remove_point(root, event);
	if (!error && !absent) {
		if (asprintf(&line, "p:" GROUP "/%s %s\n", event, place) < 0)
			error = ENOMEM;
		else if (!trace_append(root, FILE_NAME, line))
			error = errno == ENOENT && faccessat(root, FILE_NAME, F_OK, 0) ? ENOTSUP : errno;
	}
	free(line);
	free(place);
	if (root >= 0)
		close(root);
	return error;
}

const struct setting_kind setting_point = {is_point, read_point, write_point};
