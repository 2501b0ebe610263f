// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/file.h"
#include "agent/glob.h"
#include "agent/netlink.h"
#include "agent/options.h"
#include "agent/setting.h"
#include "agent/text.h"
#include "base/boot_id.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/verbs.h"

#define FILE_MAX (1 << 20)
#define PATTERNS_MAX (16 << 20)

/* Returns the text's length without an incomplete character at its end. */
static size_t whole_characters(const char *text, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)text[len - back];

		if (c >= 0xc0)
			return text_is_utf8(text + len - back, back) ? len : len - back;
		if (c < 0x80)
			break;
	}
	return len;
}

static void write_content(struct json *j, const struct bytes *bytes)
{
	size_t len = bytes->more ? whole_characters(bytes->data, bytes->len) : bytes->len;

	if (text_is_utf8(bytes->data, len))
		json_strn(j, "text", bytes->data, len);
	else
		json_base64(j, "base64", (const unsigned char *)bytes->data, bytes->len);
	if (bytes->more)
		json_bool(j, "truncated", true);
}

static int write_directory(struct json *j, const char *path)
{
	struct dirent **names;
	int count = scandir(path, &names, NULL, alphasort);

	if (count < 0)
		return errno;
	json_open(j, "directory", '[');
	for (int i = 0; i < count; i++) {
		if (strcmp(names[i]->d_name, ".") && strcmp(names[i]->d_name, ".."))
			json_str(j, NULL, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	json_close(j, ']');
	return 0;
}

static int write_setting(struct json *j, const char *name)
{
	char *value;
	int error = setting_read(name, true, &value);

	if (!error)
		json_str(j, "text", value);
	free(value);
	return error;
}

static int write_messages(struct json *j, const char *name)
{
	struct bytes bytes;
	int error = netlink_read(name, &bytes);

	if (!error)
		json_base64(j, "base64", (const unsigned char *)bytes.data, bytes.len);
	free(bytes.data);
	return error;
}

static void write_file(struct json *j, const char *path)
{
	char link[PATH_MAX];
	struct bytes bytes;
	struct stat st;
	ssize_t len;
	int error;

	json_open(j, path, '{');
	len = readlink(path, link, sizeof(link));
	if (len >= 0)
		json_strn(j, "link", link, (size_t)len);
	if (!text_is_utf8(path, strlen(path))) {
		error = EILSEQ; /* JSON cannot hold the name, so it would not identify the file */
	} else if (path[0] != '/' && setting_is_name(path)) {
		error = write_setting(j, path);
	} else if (netlink_is_name(path)) {
		error = write_messages(j, path);
	} else if (stat(path, &st)) {
		error = errno;
	} else if (S_ISDIR(st.st_mode)) {
		error = write_directory(j, path);
	} else {
		error = file_read(path, FILE_MAX, &bytes);
		if (!error) {
			write_content(j, &bytes);
			free(bytes.data);
		}
	}
	if (error)
		json_str(j, "error", errname(error));
	json_close(j, '}');
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool write_all_files(struct glob_paths *paths)
{
	char boot[BOOT_ID_SIZE];
	struct json j;

	boot_id_read(boot);
	json_start(&j, stdout);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "read");
	json_int(&j, "version", 1);
	json_int(&j, "time_ns", clock_now_ns(CLOCK_MONOTONIC));
	json_int(&j, "realtime_ns", clock_now_ns(CLOCK_REALTIME));
	json_str(&j, "boot_id", boot);
	json_open(&j, "files", '{');
	if (paths->count)
		qsort(paths->list, paths->count, sizeof(*paths->list), compare);
	for (size_t i = 0; i < paths->count; i++) {
		if (!i || strcmp(paths->list[i - 1], paths->list[i]))
			write_file(&j, paths->list[i]);
	}
	json_close(&j, '}');
	json_close(&j, '}');
	return json_line(&j);
}

/* `ethtool:*:KEY` stands for this setting of every network interface. Returns 0 or ENOMEM. */
static int expand(const char *pattern, struct glob_paths *paths)
{
	static const char prefix[] = "ethtool:*:", interfaces[] = "/sys/class/net/";
	struct glob_paths found = {0};
	int error;

	if (strncmp(pattern, prefix, strlen(prefix)))
		return glob_expand(pattern, paths);
	error = glob_expand("/sys/class/net/*", &found);
	for (size_t i = 0; i < found.count && !error; i++) {
		char *name = NULL;

		if (asprintf(&name, "ethtool:%s:%s", found.list[i] + strlen(interfaces),
			     pattern + strlen(prefix)) < 0) {
			error = ENOMEM;
			break;
		}
		error = glob_expand(name, paths);
		free(name);
	}
	glob_paths_free(&found);
	return error;
}

/* Reads patterns from standard input. NULs separate them if there are any, else newlines. */
static int read_patterns(struct glob_paths *paths)
{
	struct bytes bytes;
	int error = file_read_fd(STDIN_FILENO, PATTERNS_MAX, &bytes);
	char end;

	if (error)
		return usage_error("cannot read the patterns on standard input: %s", errname(error));
	if (bytes.more) {
		free(bytes.data);
		return usage_error("standard input has more than 16 MiB of patterns");
	}
	end = memchr(bytes.data, '\0', bytes.len) ? '\0' : '\n';
	for (char *at = bytes.data, *last = at + bytes.len; at < last && !error;) {
		char *stop = memchr(at, end, (size_t)(last - at));

		if (!stop)
			stop = last;
		*stop = '\0';
		if (*at)
			error = expand(at, paths);
		at = stop + 1;
	}
	free(bytes.data);
	return error ? error_line(STATUS_CANNOT_MEASURE, "internal", "out of memory") : 0;
}

static int verb_read(int argc, char **argv)
{
	struct glob_paths paths = {0};
	int i, status;
	bool dashes;

	status = options_parse_operands(NULL, " -|PATH|PATTERN...", argc, argv, &i, &dashes);
	if (status)
		return status < 0 ? STATUS_OK : status;
	if (i == argc)
		return usage_error("give read a path or a pattern, or - for patterns on standard input");
	if (!dashes && argc - i == 1 && !strcmp(argv[i], "-"))
		status = read_patterns(&paths);
	else
		for (; i < argc && !status; i++)
			status = expand(argv[i], &paths)
					 ? error_line(STATUS_CANNOT_MEASURE, "internal", "out of memory")
					 : 0;
	if (!status && !write_all_files(&paths))
		status = STATUS_CANNOT_MEASURE;
	glob_paths_free(&paths);
	return status;
}

AGENT_VERB("read", verb_read, "read files, also by pattern, and print them as one JSON object")
