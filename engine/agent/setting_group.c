// SPDX-License-Identifier: MIT
#include "agent/setting_group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/cgroup.h"
#include "agent/file.h"
#include "agent/setting_kind.h"

#define GROUP "group:"
#define CONTROLLER "controller:"
#define NAME_MAX_LEN 32

const char *setting_group_dir(const char *name)
{
	return !strncmp(name, GROUP "/", strlen(GROUP "/")) ? name + strlen(GROUP) : NULL;
}

/* Finds a controller's NAME and DIR. NULL if it is another setting. */
static const char *controller(const char *name, char word[NAME_MAX_LEN + 1])
{
	const char *at = name + strlen(CONTROLLER);
	size_t len;

	if (strncmp(name, CONTROLLER, strlen(CONTROLLER)))
		return NULL;
	len = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
	if (!len || len > NAME_MAX_LEN || at[len] != ':' || at[len + 1] != '/')
		return NULL;
	memcpy(word, at, len);
	word[len] = '\0';
	return at + len + 1;
}

static bool is_group(const char *name)
{
	char word[NAME_MAX_LEN + 1];

	return setting_group_dir(name) || controller(name, word);
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += len) {
		if ((at == text || at[-1] == ' ') && (!at[len] || strchr(" \n", at[len])))
			return true;
	}
	return false;
}

static int read_controller(const char *dir, const char *word, char **value)
{
	struct bytes bytes;
	char *path = NULL;
	int error = asprintf(&path, "%s/cgroup.subtree_control", dir) < 0 ? ENOMEM : 0;

	if (!error)
		error = file_read(path, 4096, &bytes);
	free(path);
	if (error)
		return error;
	*value = strdup(has_word(bytes.data, word) ? "on" : "off");
	free(bytes.data);
	return *value ? 0 : ENOMEM;
}

static int write_controller(const char *dir, const char *word, bool on)
{
	char *path = NULL;
	int fd, error = 0;

	if (asprintf(&path, "%s/cgroup.subtree_control", dir) < 0)
		return ENOMEM;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dprintf(fd, "%c%s\n", on ? '+' : '-', word) < 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	free(path);
	return error;
}

static int read_group(const char *dir, char **value)
{
	struct stat st;
	bool present = !stat(dir, &st);

	if (!present && errno != ENOENT)
		return errno;
	if (present && !cgroup_is(dir))
		return EINVAL;
	*value = strdup(present ? "present" : "absent");
	return *value ? 0 : ENOMEM;
}

static int make_group(const char *dir)
{
	char *parent = strndup(dir, (size_t)(strrchr(dir, '/') - dir));
	int error = parent ? 0 : ENOMEM;

	/* On any other file system, it would be an ordinary folder. */
	if (!error && !cgroup_is(parent))
		error = EINVAL;
	if (!error && mkdir(dir, 0755) && errno != EEXIST)
		error = errno;
	free(parent);
	return error;
}

static int read_setting(const char *name, char **value)
{
	const char *dir = setting_group_dir(name);
	char word[NAME_MAX_LEN + 1];

	if (dir)
		return read_group(dir, value);
	dir = controller(name, word);
	return dir ? read_controller(dir, word, value) : EINVAL;
}

static int write_setting(const char *name, const char *value)
{
	const char *dir = setting_group_dir(name);
	char word[NAME_MAX_LEN + 1];

	if (dir && !strcmp(value, "present"))
		return make_group(dir);
	if (dir && !strcmp(value, "absent"))
		return cgroup_is(dir) ? cgroup_remove(dir) : EINVAL;
	dir = controller(name, word);
	if (!dir || (strcmp(value, "on") && strcmp(value, "off")))
		return EINVAL;
	return write_controller(dir, word, !strcmp(value, "on"));
}

const struct setting_kind setting_group = {is_group, read_setting, write_setting};
