// SPDX-License-Identifier: MIT
#include "agent/setting_module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rt/clock.h"

#define PREFIX "module:"
#define NAME_SIZE 56	  /* the kernel's MODULE_NAME_LEN on 64-bit machines */
#define COMPRESSED_FILE 4 /* MODULE_INIT_COMPRESSED_FILE, Linux 5.17 */
#define BUSY_TRIES 100
#define BUSY_NS (NS_PER_S / 20)

/* The module's name as the kernel has it, from its file's name. false: that is none. */
static bool module_name(const char *setting, char name[NAME_SIZE])
{
	const char *file = setting + strlen(PREFIX), *base, *end;
	size_t len;

	if (strncmp(setting, PREFIX, strlen(PREFIX)) || file[0] != '/')
		return false;
	base = strrchr(file, '/') + 1;
	end = strchr(base, '.');
	len = end ? (size_t)(end - base) : 0;
	if (!len || len >= NAME_SIZE ||
	    (strcmp(end, ".ko") && strcmp(end, ".ko.xz") && strcmp(end, ".ko.gz") && strcmp(end, ".ko.zst")))
		return false;
	memcpy(name, base, len);
	name[len] = '\0';
	for (char *c = name; *c; c++)
		*c = *c == '-' ? '_' : *c;
	return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == len;
}

bool setting_module_is(const char *name)
{
	char module[NAME_SIZE];

	return module_name(name, module);
}

int setting_module_read(const char *name, char **value)
{
	char module[NAME_SIZE], path[NAME_SIZE + 32];

	*value = NULL;
	if (!module_name(name, module))
		return EINVAL;
	/* What is built into the kernel has a folder too, without this file. */
	snprintf(path, sizeof(path), "/sys/module/%s/initstate", module);
	if (access("/proc/modules", F_OK))
		return ENOSYS;
	*value = strdup(access(path, F_OK) ? "absent" : "present");
	return *value ? 0 : ENOMEM;
}

static int insert(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY), error = 0;
	int flags = strcmp(strrchr(file, '.'), ".ko") ? COMPRESSED_FILE : 0;

	if (fd < 0)
		return errno;
	if (syscall(SYS_finit_module, fd, "", flags) && errno != EEXIST)
		error = errno;
	close(fd);
	return error;
}

/* Who used it may be ending at this moment. */
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

int setting_module_write(const char *name, const char *value)
{
	char module[NAME_SIZE];

	if (!module_name(name, module))
		return EINVAL;
	if (!strcmp(value, "present"))
		return insert(name + strlen(PREFIX));
	return strcmp(value, "absent") != 0 ? EINVAL : take_out(module);
}
