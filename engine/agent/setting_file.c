// SPDX-License-Identifier: MIT
#include "agent/setting_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_error.h"
#include "agent/file.h"
#include "agent/setting.h"
#include "agent/setting_kind.h"
#include "agent/text.h"
#include "base/clock.h"

#define BUSY_TRIES 40
#define BUSY_NS (NS_PER_S / 20)

static bool is_path(const char *name)
{
	return name[0] == '/';
}

int setting_file_text(const char *path, char **text)
{
	struct bytes bytes;
	int error = file_read(path, SETTING_MAX_LEN, &bytes);

	*text = NULL;
	if (error)
		return error;
	if (bytes.more)
		error = EFBIG;
	else if (memchr(bytes.data, '\0', bytes.len) || !text_is_utf8(bytes.data, bytes.len))
		error = EILSEQ;
	if (error)
		free(bytes.data);
	else
		*text = bytes.data;
	return error;
}

static char *selected_between(const char *text, char begin, char end)
{
	const char *open = strchr(text, begin), *close = open ? strchr(open, end) : NULL;

	if (!close || close == open + 1 || strchr(open + 1, begin) || strchr(close + 1, end))
		return NULL;
	/* Only a separate word without spaces counts. */
	if ((open > text && !isspace((unsigned char)open[-1])) ||
	    (close[1] && !isspace((unsigned char)close[1])))
		return NULL;
	for (const char *c = open; c < close; c++) {
		if (isspace((unsigned char)*c))
			return NULL;
	}
	return strndup(open + 1, (size_t)(close - open - 1));
}

char *setting_selected(const char *text)
{
	char *word = selected_between(text, '[', ']');

	/* /sys/kernel/debug/sched/preempt has round brackets. */
	return word ? word : selected_between(text, '(', ')');
}

static int read_kernel_file(const char *path, char **value)
{
	char *word;
	int error = setting_file_text(path, value);
	size_t len;

	if (error)
		return error;
	len = strlen(*value);
	if (len && (*value)[len - 1] == '\n')
		(*value)[len - 1] = '\0';
	if (strchr(*value, '\n')) {
		free(*value);
		*value = NULL;
		return AGENT_MULTI_LINE;
	}
	word = setting_selected(*value);
	if (word) {
		free(*value);
		*value = word;
	}
	return 0;
}

/* Open it only if it is a file, because opening a device may have an effect. Returns 0 or an errno. */
static int open_file(const char *path, int *fd)
{
	struct stat st;

	*fd = -1;
	if (stat(path, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return EINVAL;
	*fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
		return errno;
	if (!fstat(*fd, &st) && S_ISREG(st.st_mode))
		return 0;
	close(*fd);
	return EINVAL;
}

/* Use one write(2), because a kernel file takes a value as a whole. */
static int write_once(int fd, const char *text, size_t len)
{
	ssize_t written;

	do {
		written = write(fd, text, len);
	} while (written < 0 && errno == EINTR);
	return written < 0 ? errno : (size_t)written != len ? EIO : 0;
}

static int write_disk_file(const char *path, const char *value)
{
	size_t len = strlen(value);
	int fd, error = open_file(path, &fd);

	if (error)
		return error;
	error = write_once(fd, value, len);
	if (!error && ftruncate(fd, (off_t)len))
		error = errno;
	if (close(fd) && !error)
		error = errno;
	return error;
}

/* A kernel file ignores an empty write, but an empty line clears it. */
static int write_kernel_file(const char *path, const char *value)
{
	char *line;
	int fd, error, len = asprintf(&line, "%s\n", value);

	if (len < 0)
		return ENOMEM;
	error = open_file(path, &fd);
	if (!error) {
		error = write_once(fd, line, (size_t)len);
		/* The kernel may still account for the CPUs that went or came just before. */
		for (int i = 0; error == EBUSY && i < BUSY_TRIES; i++) {
			clock_pause_ns(BUSY_NS);
			error = write_once(fd, line, (size_t)len);
		}
		if (close(fd) && !error)
			error = errno;
	}
	free(line);
	return error;
}

const struct setting_kind setting_disk_file = {is_path, setting_file_text, write_disk_file};
const struct setting_kind setting_kernel_file = {is_path, read_kernel_file, write_kernel_file};
