// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/setting_kind.h"
#include "base/clock.h"

#define PREFIX "module:"
#define NAME_SIZE 56	  /* the kernel's MODULE_NAME_LEN on 64-bit machines */
#define COMPRESSED_FILE 4 /* MODULE_INIT_COMPRESSED_FILE, Linux 5.17 */
#define BUSY_TRIES 100
#define BUSY_NS (NS_PER_S / 20)

/* The parts of a setting: the file, the module's name in the kernel, and its parameters. */
struct module {
	char file[PATH_MAX], name[NAME_SIZE];
	const char *parameters;
};

/* Returns the length of the ending in the file's first `len` bytes; 0 without an ending. */
static size_t ending_length(const char *file, size_t len)
{
	static const char *const endings[] = {".ko", ".ko.xz", ".ko.gz", ".ko.zst"};

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t own = strlen(endings[i]);

		if (len > own && !strncmp(file + len - own, endings[i], own))
			return own;
	}
	return 0;
}

/* Parses `module:FILE` or `module:FILE PARAMETERS`. A space in a folder's name does not end the file.
 * Returns false for any other text. */
static bool parse(const char *setting, struct module *module)
{
	const char *file = setting + strlen(PREFIX), *base;
	char *name = module->name;
	size_t len = 0;

	if (strncmp(setting, PREFIX, strlen(PREFIX)) || file[0] != '/')
		return false;
	do
		len += strcspn(file + len + 1, " ") + 1;
	while (file[len] && !ending_length(file, len));
	if (!ending_length(file, len) || len >= sizeof(module->file))
		return false;
	memcpy(module->file, file, len);
	module->file[len] = '\0';
	module->parameters = file[len] ? file + len + 1 : "";
	base = strrchr(module->file, '/') + 1;
	len = strlen(base) - ending_length(base, strlen(base));
	if (!len || len >= NAME_SIZE)
		return false;
	memcpy(name, base, len);
	name[len] = '\0';
	for (char *c = name; *c; c++)
		*c = *c == '-' ? '_' : *c;
	return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == len;
}

static bool is_module(const char *name)
{
	struct module module;

	return parse(name, &module);
}

static int read_setting(const char *name, char **value)
{
	struct module module;
	char path[NAME_SIZE + 32];

	if (!parse(name, &module))
		return EINVAL;
	/* Built-in code also has a folder, but without this file. */
	snprintf(path, sizeof(path), "/sys/module/%s/initstate", module.name);
	if (access("/proc/modules", F_OK))
		return ENOSYS;
	*value = strdup(access(path, F_OK) ? "absent" : "present");
	return *value ? 0 : ENOMEM;
}

static int insert(const struct module *module)
{
	int fd = open(module->file, O_RDONLY | O_CLOEXEC | O_NOCTTY), error = 0;
	int flags = strcmp(strrchr(module->file, '.'), ".ko") ? COMPRESSED_FILE : 0;

	if (fd < 0)
		return errno;
	if (syscall(SYS_finit_module, fd, module->parameters, flags) && errno != EEXIST)
		error = errno;
	close(fd);
	return error;
}

/* Its last user may be ending at this moment. */
static int take_out(const char *module)
{
	for (int i = 0; i < BUSY_TRIES; i++) {
		if (!syscall(SYS_delete_module, module, O_NONBLOCK) || errno == ENOENT)
			return 0;
		if (errno != EAGAIN && errno != EBUSY)
			break;
		clock_pause_ns(BUSY_NS);
	}
	return errno;
}

static int write_setting(const char *name, const char *value)
{
	struct module module;

	if (!parse(name, &module))
		return EINVAL;
	if (!strcmp(value, "present"))
		return insert(&module);
	return strcmp(value, "absent") != 0 ? EINVAL : take_out(module.name);
}

const struct setting_kind setting_module = {is_module, read_setting, write_setting};
