// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/setting_file.h"
#include "agent/setting_kind.h"

#define MAGIC 0x7655821 /* RDTGROUP_SUPER_MAGIC, include/uapi/linux/magic.h */
#define ROOT "/sys/fs/resctrl"
#define PREFIX "resctrl:"
#define ABSENT "absent"
#define NO_CPU "-"
#define WORD_MAX 32
#define PATH_LEN (sizeof(ROOT) + WORD_MAX + 20)

struct place {
	char resource[WORD_MAX + 1];
	char group[WORD_MAX + 1]; /* "": the default group */
};

/* Copies a word of these letters from *at, and moves *at behind it. */
static bool take(const char **at, const char *letters, char word[WORD_MAX + 1])
{
	size_t len = strspn(*at, letters);

	if (!len || len > WORD_MAX)
		return false;
	memcpy(word, *at, len);
	word[len] = '\0';
	*at += len;
	return true;
}

static bool parse(const char *name, struct place *place)
{
	const char *at = name + strlen(PREFIX);

	place->group[0] = '\0';
	if (strncmp(name, PREFIX, strlen(PREFIX)) ||
	    !take(&at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", place->resource))
		return false;
	if (!*at)
		return true;
	return *at++ == ':' && take(&at, "abcdefghijklmnopqrstuvwxyz0123456789-", place->group) && !*at;
}

static bool is_resctrl(const char *name)
{
	struct place place;

	return parse(name, &place);
}

/* On any other file system, a group would be an ordinary folder. */
static bool is_mounted(void)
{
	struct statfs fs;

	return !statfs(ROOT, &fs) && (long)fs.f_type == MAGIC;
}

static void path_of(const struct place *place, const char *file, char path[PATH_LEN])
{
	snprintf(path, PATH_LEN, ROOT "%s%s%s", place->group[0] ? "/" : "", place->group, file);
}

/* Returns the resource's part of a schemata file, malloc'ed, without the spaces that align it. */
static char *share_in(char *text, const char *resource)
{
	size_t len = strlen(resource);
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		char *share, *to;

		line += strspn(line, " ");
		if (strncmp(line, resource, len) || line[len] != ':')
			continue;
		share = to = strdup(line + len + 1);
		for (const char *from = to; from && *from; from++) {
			if (*from != ' ')
				*to++ = *from;
		}
		if (to)
			*to = '\0';
		return share;
	}
	return NULL;
}

static int read_share(const struct place *place, char **share)
{
	char path[PATH_LEN], *text;
	int error;

	*share = NULL;
	path_of(place, "/schemata", path);
	error = setting_file_text(path, &text);
	if (error)
		return error;
	*share = share_in(text, place->resource);
	free(text);
	return *share ? 0 : ENOTSUP;
}

static int read_group(const struct place *place, char **value)
{
	char path[PATH_LEN], *cpus, *share;
	int error;

	*value = NULL;
	path_of(place, "/cpus_list", path);
	error = setting_file_text(path, &cpus);
	if (error == ENOENT) {
		*value = strdup(ABSENT);
		return *value ? 0 : ENOMEM;
	}
	if (error)
		return error;
	error = read_share(place, &share);
	cpus[strcspn(cpus, "\n")] = '\0';
	if (!error && asprintf(value, "%s %s", cpus[0] ? cpus : NO_CPU, share) < 0) {
		*value = NULL;
		error = ENOMEM;
	}
	free(cpus);
	free(share);
	return error;
}

static int read_setting(const char *name, char **value)
{
	struct place place;

	*value = NULL;
	if (!parse(name, &place))
		return EINVAL;
	if (!is_mounted())
		return ENODEV;
	return place.group[0] ? read_group(&place, value) : read_share(&place, value);
}

static int write_line(const struct place *place, const char *file, const char *line)
{
	char path[PATH_LEN];
	int fd, error = 0;

	path_of(place, file, path);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_TRUNC);
	if (fd < 0)
		return errno;
	if (write(fd, line, strlen(line)) != (ssize_t)strlen(line))
		error = errno;
	close(fd);
	return error;
}

static int write_share(const struct place *place, const char *share)
{
	char *line;
	int error = asprintf(&line, "%s:%s\n", place->resource, share) < 0 ? ENOMEM : 0;

	if (error)
		return error;
	error = write_line(place, "/schemata", line);
	free(line);
	return error;
}

/* First the share, then the CPUs: they never use what another group still has. */
static int write_group(const struct place *place, const char *value)
{
	const char *share = strchr(value, ' ');
	char path[PATH_LEN], *cpus = NULL;
	bool made;
	int error;

	path_of(place, "", path);
	if (!strcmp(value, ABSENT))
		return rmdir(path) && errno != ENOENT ? errno : 0;
	if (!share)
		return EINVAL;
	made = !mkdir(path, 0755);
	if (!made && errno != EEXIST)
		return errno;
	error = write_share(place, share + 1);
	if (!error && asprintf(&cpus, "%.*s\n", (int)(share - value), value) < 0)
		error = ENOMEM;
	if (!error)
		error = write_line(place, "/cpus_list", strncmp(cpus, NO_CPU, 1) ? cpus : "\n");
	free(cpus);
	if (error && made)
		rmdir(path);
	return error;
}

static int write_setting(const char *name, const char *value)
{
	struct place place;

	if (!parse(name, &place))
		return EINVAL;
	if (!is_mounted())
		return ENODEV;
	return place.group[0] ? write_group(&place, value) : write_share(&place, value);
}

const struct setting_kind setting_resctrl = {is_resctrl, read_setting, write_setting};
