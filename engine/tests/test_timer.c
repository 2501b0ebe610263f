// SPDX-License-Identifier: MIT
/* Timers of systemd, with a systemctl of ours: the linker uses these instead of the real functions. */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/setting.h"
#include "tests/cm.h"

#define CHILD 77

int __wrap_access(const char *path, int mode);
int __wrap_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);

static struct {
	bool booted, installed, running, killed;
	int status; /* of the next call, if it is not 0 */
	char said[128];
} machine;

int __wrap_access(const char *path, int mode)
{
	(void)mode;
	assert_string_equal(path, "/run/systemd/system");
	errno = ENOENT;
	return machine.booted ? 0 : -1;
}

int __wrap_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	(void)actions;
	(void)attributes;
	(void)envp;
	assert_string_equal(file, "systemctl");
	machine.said[0] = '\0';
	for (int i = 1; argv[i]; i++) {
		strcat(machine.said, argv[i]);
		strcat(machine.said, argv[i + 1] ? " " : "");
	}
	*pid = CHILD;
	return machine.installed ? 0 : ENOENT;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	assert_int_equal(pid, CHILD);
	assert_int_equal(options, 0);
	if (machine.killed) {
		*status = 9;
	} else if (machine.status) {
		*status = machine.status << 8;
	} else if (strstr(machine.said, "is-active")) {
		*status = machine.running ? 0 : 3 << 8;
	} else {
		machine.running = strstr(machine.said, "start") != NULL;
		*status = 0;
	}
	return pid;
}

#define NAME "timer:fwupd-refresh.timer"

static int fresh(void **state)
{
	(void)state;
	memset(&machine, 0, sizeof(machine));
	machine.booted = machine.installed = machine.running = true;
	return 0;
}

static void expect(const char *wanted)
{
	char *value;

	assert_int_equal(setting_read(NAME, true, &value), 0);
	assert_string_equal(value, wanted);
	free(value);
}

static void a_timer_is_stopped_and_started_again(void **state)
{
	(void)state;
	expect("running");
	assert_string_equal(machine.said, "--quiet is-active -- fwupd-refresh.timer");
	assert_int_equal(setting_write(NAME, true, "stopped"), 0);
	assert_string_equal(machine.said, "--quiet stop -- fwupd-refresh.timer");
	expect("stopped");
	assert_int_equal(setting_write(NAME, true, "running"), 0);
	expect("running");
	assert_int_equal(setting_write(NAME, true, "on"), EINVAL);
}

static void error(int wanted)
{
	char *value;

	assert_int_equal(setting_read(NAME, true, &value), wanted);
	assert_null(value);
}

static void a_machine_without_the_timer_or_systemd_says_so(void **state)
{
	(void)state;
	machine.status = 4;
	error(ENOENT);
	machine.status = 1;
	error(EIO);
	assert_int_equal(setting_write(NAME, true, "stopped"), EIO);
	machine.killed = true;
	error(EIO);
	machine.installed = false;
	error(ENOTSUP);
	machine.booted = false;
	error(ENOTSUP);
	assert_int_equal(setting_write(NAME, true, "stopped"), ENOTSUP);
}

static void names_are_of_timers(void **state)
{
	static const char *const others[] = {"timer:",		"timer:.timer",	  "timer:a",
					     "timer:a.service", "timer:-H.timer", "timer:a b.timer",
					     "timer:a/b.timer", "timer:a.timer;", "timer:a*.timer"};
	char *longest = malloc(300);

	(void)state;
	assert_true(setting_is_name("timer:a@b\\x2d.timer"));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(setting_is_name(others[i]));
	memset(longest, 'a', 299);
	memcpy(longest, "timer:", 6);
	strcpy(longest + 293, ".timer");
	assert_false(setting_is_name(longest));
	free(longest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_timer_is_stopped_and_started_again, fresh),
		cmocka_unit_test_setup(a_machine_without_the_timer_or_systemd_says_so, fresh),
		cmocka_unit_test(names_are_of_timers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
