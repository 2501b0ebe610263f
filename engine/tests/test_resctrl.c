// SPDX-License-Identifier: MIT
/* Groups of resctrl, in a folder that behaves like the kernel's: the linker uses these functions instead of
 * the real ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/journal.h"
#include "agent/restore.h"
#include "agent/setting.h"
#include "base/boot_id.h"
#include "tests/cm.h"

#define ROOT "/sys/fs/resctrl"
#define OWN "resctrl:L3:rtgauge"
#define REST "resctrl:L3"
#define SCHEMATA "    MB:0=100;1= 50\n    L3:0=fff;1=fff\n"

int __wrap_statfs(const char *path, struct statfs *fs);
int __wrap_stat(const char *path, struct stat *st);
int __real_stat(const char *path, struct stat *st);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_rmdir(const char *path);
int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
int __real_mkdir(const char *path, mode_t mode);
int __real_rmdir(const char *path);

/* What glibc calls them in a program whose files may be large. */
int __wrap_statfs64(const char *path, struct statfs *fs) __attribute__((alias("__wrap_statfs")));
int __wrap_stat64(const char *path, struct stat *st) __attribute__((alias("__wrap_stat")));
int __wrap_open64(const char *path, int flags, ...) __attribute__((alias("__wrap_open")));

static char folder[] = "/tmp/rtgauge-resctrl-XXXXXX";
static bool mounted, full; /* full: no more groups */

/* Returns where a file of resctrl is in the test's folder. */
static const char *there(const char *path, char place[256])
{
	if (strncmp(path, ROOT, strlen(ROOT)) != 0)
		return path;
	snprintf(place, 256, "%s%s", folder, path + strlen(ROOT));
	return place;
}

int __wrap_statfs(const char *path, struct statfs *fs)
{
	assert_string_equal(path, ROOT);
	memset(fs, 0, sizeof(*fs));
	fs->f_type = mounted ? 0x7655821 : 0x62656572;
	return 0;
}

int __wrap_stat(const char *path, struct stat *st)
{
	char place[256];

	return __real_stat(there(path, place), st);
}

int __wrap_open(const char *path, int flags, ...)
{
	char place[256];
	va_list more;
	int mode;

	va_start(more, flags);
	mode = flags & O_CREAT ? va_arg(more, int) : 0;
	va_end(more);
	return __real_open(there(path, place), flags, mode);
}

static void put(const char *path, const char *text)
{
	char place[256];
	FILE *file = fopen(there(path, place), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	char place[256];
	int failed;

	if (strncmp(path, ROOT, strlen(ROOT)) != 0)
		return __real_mkdir(path, mode);
	if (full) {
		errno = ENOSPC;
		return -1;
	}
	failed = __real_mkdir(there(path, place), mode);
	if (!failed && strcmp(place, folder) != 0) {
		put(ROOT "/rtgauge/schemata", SCHEMATA);
		put(ROOT "/rtgauge/cpus_list", "\n");
	}
	return failed;
}

int __wrap_rmdir(const char *path)
{
	char place[256], file[300];

	there(path, place);
	snprintf(file, sizeof(file), "%s/schemata", place);
	unlink(file);
	snprintf(file, sizeof(file), "%s/cpus_list", place);
	unlink(file);
	return __real_rmdir(place);
}

static int begin(void **state)
{
	(void)state;
	mounted = true;
	full = false;
	put(ROOT "/schemata", SCHEMATA);
	return 0;
}

static void expect(const char *name, const char *expected)
{
	char *value;

	assert_int_equal(setting_read(name, true, &value), 0);
	assert_string_equal(value, expected);
	free(value);
}

static void a_group_comes_with_its_share_and_its_cpus_and_goes(void **state)
{
	(void)state;
	expect(OWN, "absent");
	assert_int_equal(setting_write(OWN, true, "2-3 0=00f;1=fff"), 0);
	expect(OWN, "2-3 0=00f;1=fff");
	assert_int_equal(setting_write(OWN, true, "- 0=fff;1=fff"), 0);
	expect(OWN, "- 0=fff;1=fff");
	assert_int_equal(setting_write(OWN, true, "absent"), 0);
	expect(OWN, "absent");
	assert_int_equal(setting_write(OWN, true, "absent"), 0);
}

static void the_default_group_has_its_share_of_each_resource(void **state)
{
	(void)state;
	expect(REST, "0=fff;1=fff");
	expect("resctrl:MB", "0=100;1=50");
	assert_int_equal(setting_write(REST, true, "0=ff0;1=fff"), 0);
	expect(REST, "0=ff0;1=fff");
}

static void what_resctrl_lacks_is_an_error(void **state)
{
	char *value;

	(void)state;
	assert_int_equal(setting_read("resctrl:L2", true, &value), ENOTSUP);
	assert_null(value);
	full = true;
	assert_int_equal(setting_write(OWN, true, "2 0=00f"), ENOSPC);
	full = false;
	assert_int_equal(setting_write(OWN, true, "2"), EINVAL);
	expect(OWN, "absent");
	mounted = false;
	assert_int_equal(setting_read(REST, true, &value), ENODEV);
	assert_int_equal(setting_write(OWN, true, "2 0=00f"), ENODEV);
}

/* Makes the group as a run does, and ends the run after what happens to the group. */
static void restore_after(const char *old, const char *cpus, const char *action)
{
	static const struct restore_wish wish = {.run = "run-1"};
	char dir[] = "/tmp/rtgauge-resctrl-XXXXXX", path[64], boot[BOOT_ID_SIZE], *lines = NULL;
	struct entry entry = {
		.run = "run-1", .is_volatile = true, .path = OWN, .old = old, .wanted = "2-3 0=00f;1=fff"};
	struct journal journal;
	size_t len;
	FILE *out = open_memstream(&lines, &len);

	assert_non_null(mkdtemp(dir));
	entry.pid = getpid();
	boot_id_read(boot);
	entry.boot = boot;
	assert_int_equal(journal_open(&journal, dir, true), 0);
	assert_int_equal(journal_append(&journal, &entry, 1), 0);
	assert_int_equal(setting_write(OWN, true, entry.wanted), 0);
	assert_int_equal(journal_mark(&journal, &entry, STATE_SET), 0);
	journal_close(&journal);
	put(ROOT "/rtgauge/cpus_list", cpus);
	assert_int_equal(restore_settings(dir, &wish, out), 0);
	fclose(out);
	assert_non_null(strstr(lines, action));
	free(lines);
	snprintf(path, sizeof(path), "%s/journal.ndjson", dir);
	unlink(path);
	rmdir(dir);
}

static void a_group_of_a_run_goes_even_if_a_cpu_went_offline(void **state)
{
	(void)state;
	restore_after("absent", "2\n", "\"restored\"");
	expect(OWN, "absent");
	assert_int_equal(setting_write(OWN, true, "1 0=0f0;1=fff"), 0);
	restore_after("1 0=0f0;1=fff", "2\n", "\"left-changed-by-other\"");
	expect(OWN, "2 0=00f;1=fff");
	assert_int_equal(setting_write(OWN, true, "absent"), 0);
}

static void names_lead_to_no_other_folder(void **state)
{
	static const char *const others[] = {
		"resctrl:", "resctrl:l3", "resctrl:L3:", "resctrl:L3/x", "resctrl:L3:../x", "resctrl:L3:a/b"};

	(void)state;
	assert_true(setting_is_name(OWN));
	assert_true(setting_is_volatile(REST));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(setting_is_name(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_group_comes_with_its_share_and_its_cpus_and_goes, begin),
		cmocka_unit_test_setup(the_default_group_has_its_share_of_each_resource, begin),
		cmocka_unit_test_setup(what_resctrl_lacks_is_an_error, begin),
		cmocka_unit_test_setup(a_group_of_a_run_goes_even_if_a_cpu_went_offline, begin),
		cmocka_unit_test_setup(names_lead_to_no_other_folder, begin),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	__wrap_rmdir(folder);
	return failed;
}
