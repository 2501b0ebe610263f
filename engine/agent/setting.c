// SPDX-License-Identifier: MIT
#include "agent/setting.h"
#include "agent/text.h"
#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file.h"
#include "agent/setting_group.h"
#include "agent/setting_module.h"
#include "agent/setting_thread.h"
#include "agent/setting_trace.h"
#include "base/cpuset.h"

bool setting_is_name(const char *path)
{
	return path[0] == '/' || setting_thread_is(path) || setting_group_is(path) ||
	       setting_trace_is(path) || setting_module_is(path);
}

bool setting_is_volatile(const char *path)
{
	static const char *const trees[] = {"/proc/", "/sys/", "/dev/", "/run/"};
	char *real = path[0] == '/' ? realpath(path, NULL) : NULL;
	const char *place = real ? real : path;
	bool found = path[0] != '/';

	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
		found |= !strncmp(place, trees[i], strlen(trees[i]));
	free(real);
	return found;
}

char *setting_selected(const char *text)
{
	const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

	if (!close || close == open + 1 || strchr(open + 1, '[') || strchr(close + 1, ']'))
		return NULL;
	/* A word of its own, without a space in it. */
	if ((open > text && !isspace((unsigned char)open[-1])) ||
	    (close[1] && !isspace((unsigned char)close[1])))
		return NULL;
	for (const char *c = open; c < close; c++) {
		if (isspace((unsigned char)*c))
			return NULL;
	}
	return strndup(open + 1, (size_t)(close - open - 1));
}

/* Of the clock of Xenomai's Cobalt ("gravity: irq=0 kernel=2000 user=2000", and more lines) what sets its
 * gravity: "0i 2000k 2000u". malloc'ed; NULL: it is no such. */
static char *clock_gravity(const char *path, const char *text)
{
	static const char *const words[] = {"gravity: irq=", " kernel=", " user="};
	static const char clock[] = "/xenomai/clock/coreclk";
	size_t path_len = strlen(path), len;
	long long ns[3];
	char *value, *end;

	if (path_len < sizeof(clock) || strcmp(path + path_len - (sizeof(clock) - 1), clock))
		return NULL;
	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		len = strlen(words[i]);
		if (strncmp(text, words[i], len))
			return NULL;
		ns[i] = strtoll(text + len, &end, 10);
		if (end == text + len)
			return NULL;
		text = end;
	}
	return asprintf(&value, "%lldi %lldk %lldu", ns[0], ns[1], ns[2]) < 0 ? NULL : value;
}

const char *setting_read(const char *path, bool is_volatile, char **value)
{
	struct bytes bytes;
	int error = 0;
	char *word;

	*value = NULL;
	if (path[0] != '/') {
		error = setting_thread_is(path)	  ? setting_thread_read(path, value)
			: setting_trace_is(path)  ? setting_trace_read(path, value)
			: setting_module_is(path) ? setting_module_read(path, value)
						  : setting_group_read(path, value);
		return error ? errname(error) : NULL;
	}
	error = file_read(path, SETTING_MAX_LEN, &bytes);
	if (error)
		return errname(error);
	if (bytes.more)
		error = EFBIG;
	else if (memchr(bytes.data, '\0', bytes.len) || !text_is_utf8(bytes.data, bytes.len))
		error = EILSEQ;
	if (error) {
		free(bytes.data);
		return errname(error);
	}
	*value = bytes.data;
	if (!is_volatile)
		return NULL;
	if (bytes.len && bytes.data[bytes.len - 1] == '\n')
		bytes.data[bytes.len - 1] = '\0';
	word = clock_gravity(path, bytes.data);
	if (!word && strchr(bytes.data, '\n')) {
		free(bytes.data);
		*value = NULL;
		return "multi-line";
	}
	if (!word)
		word = setting_selected(bytes.data);
	if (word) {
		free(bytes.data);
		*value = word;
	}
	return NULL;
}

const char *setting_write(const char *path, bool is_volatile, const char *value)
{
	struct stat st;
	size_t len = strlen(value);
	char *text;
	ssize_t written;
	int error = 0;
	int fd;

	if (path[0] != '/') {
		error = setting_thread_is(path)	  ? setting_thread_write(path, value)
			: setting_trace_is(path)  ? setting_trace_write(path, value)
			: setting_module_is(path) ? setting_module_write(path, value)
						  : setting_group_write(path, value);
		return error ? errname(error) : NULL;
	}
	if (stat(path, &st))
		return errname(errno);
	if (!S_ISREG(st.st_mode))
		return errname(EINVAL);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errname(errno);
	text = malloc(len + 2);
	if (!text || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		free(text);
		close(fd);
		return errname(EINVAL);
	}
	memcpy(text, value, len + 1);
	/* Nothing at all cannot be written to a kernel file; an empty line clears it. */
	if (is_volatile)
		text[len++] = '\n';
	do {
		written = write(fd, text, len);
	} while (written < 0 && errno == EINTR);
	if (written < 0)
		error = errno;
	else if ((size_t)written != len)
		error = EIO;
	else if (!is_volatile && ftruncate(fd, (off_t)len))
		error = errno;
	if (close(fd) && !error)
		error = errno;
	free(text);
	return error ? errname(error) : NULL;
}

/* Spaces at the ends removed, those within made one each. malloc'ed. */
static char *tidy(const char *text)
{
	char *result = malloc(strlen(text) + 1), *to = result;

	if (!result)
		return NULL;
	for (; *text; text++) {
		if (!isspace((unsigned char)*text))
			*to++ = *text;
		else if (to > result && to[-1] != ' ')
			*to++ = ' ';
	}
	if (to > result && to[-1] == ' ')
		to--;
	*to = '\0';
	return result;
}

/* "0x00,0000000F" -> "f": no zeros before, no commas (which precede each eight digits). In place; NULL:
 * no mask. */
static char *mask(char *text)
{
	char *from = text, *to = text;

	if (from[0] == '0' && (from[1] == 'x' || from[1] == 'X'))
		from += 2;
	if (!*from)
		return NULL;
	for (; *from; from++) {
		if (*from == ',') {
			if (from == text || strcspn(from + 1, ",") != 8)
				return NULL;
		} else if (!isxdigit((unsigned char)*from)) {
			return NULL;
		} else if (to > text || *from != '0') {
			*to++ = (char)tolower((unsigned char)*from);
		}
	}
	*to = '\0';
	return text;
}

/* 1, 0 or -1 where it is neither. */
static int yes_or_no(const char *text)
{
	if (!*text || text[1])
		return -1;
	return strchr("Yy1", *text) ? 1 : strchr("Nn0", *text) ? 0 : -1;
}

bool setting_same(const char *a, const char *b)
{
	static struct cpuset cpus_a, cpus_b;
	char *x = tidy(a), *y = tidy(b);
	bool same = false;

	if (!x || !y)
		goto out;
	same = !strcmp(x, y) || (yes_or_no(x) >= 0 && yes_or_no(x) == yes_or_no(y));
	if (!same && cpuset_parse(&cpus_a, x) && cpuset_parse(&cpus_b, y))
		same = !memcmp(&cpus_a, &cpus_b, sizeof(cpus_a));
	if (!same && mask(x) && mask(y))
		same = !strcmp(x, y);
out:
	free(x);
	free(y);
	return same;
}
