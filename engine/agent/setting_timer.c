// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/setting_kind.h"

#define PREFIX "timer:"
#define SUFFIX ".timer"
#define NAME_MAX_LEN 255
/* Exit statuses of `systemctl is-active` (systemctl(1), from the LSB). */
#define IS_STOPPED 3
#define IS_UNKNOWN 4

extern char **environ;

/* Returns the unit's name; NULL: it is not a timer's (systemd.unit(5)). */
static const char *unit_of(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.@\\-";
	const char *unit = name + strlen(PREFIX);
	size_t len, end = strlen(SUFFIX);

	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return NULL;
	len = strlen(unit);
	if (len <= end || len > NAME_MAX_LEN || unit[0] == '-' || strspn(unit, letters) != len ||
	    strcmp(unit + len - end, SUFFIX))
		return NULL;
	return unit;
}

static bool is_timer(const char *name)
{
	return unit_of(name);
}

/* Runs systemctl without output. Returns its exit status, or -1 with errno. */
static int systemctl(const char *verb, const char *unit)
{
	char *const argv[] = {(char *)"systemctl", (char *)"--quiet", (char *)verb,
			      (char *)"--",	   (char *)unit,      NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int status, error;
	pid_t child;

	/* sd_booted(3): otherwise systemctl would ask a bus that may not exist. */
	if (access("/run/systemd/system", F_OK)) {
		errno = ENOTSUP;
		return -1;
	}
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && !error; fd++)
		error = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	if (!error)
		error = posix_spawnp(&child, argv[0], &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	if (error) {
		errno = error == ENOENT ? ENOTSUP : error;
		return -1;
	}
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	errno = EIO;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int read_timer(const char *name, char **value)
{
	const char *unit = unit_of(name);
	int status = unit ? systemctl("is-active", unit) : -1;

	*value = NULL;
	if (!unit)
		return EINVAL;
	if (status == IS_UNKNOWN)
		return ENOENT;
	if (status != 0 && status != IS_STOPPED)
		return status < 0 ? errno : EIO;
	*value = strdup(status ? "stopped" : "running");
	return *value ? 0 : ENOMEM;
}

static int write_timer(const char *name, const char *value)
{
	const char *unit = unit_of(name);
	bool stop = !strcmp(value, "stopped");
	int status;

	if (!unit || (!stop && strcmp(value, "running")))
		return EINVAL;
	status = systemctl(stop ? "stop" : "start", unit);
	if (status < 0)
		return errno;
	return status ? EIO : 0;
}

const struct setting_kind setting_timer = {is_timer, read_timer, write_timer};
