// SPDX-License-Identifier: MIT
/* Settings. The linker uses the write of this file instead of the real one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_error.h"
#include "agent/setting.h"
#include "agent/setting_file.h"
#include "tests/cm.h"

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);

static int busy; /* so many writes are refused */

ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	if (!busy)
		return __real_write(fd, data, len);
	busy--;
	errno = EBUSY;
	return -1;
}

static void the_same_value_is_known_in_its_other_forms(void **state)
{
	static const char *const same[][2] = {
		{"1", "1"},
		{" 1\n", "1"},
		{"32768\t60999", "32768 60999"},
		{"0,1", "0-1"},
		{"0-3,6", "6,0,1,2-3"},
		{"3", "00000003"},
		{"0xF", "f"},
		{"ff,ffffffff", "ffffffffff"},
		{"1", "Y"},
		{"n", "0"},
		{"0", "00000000,00000000"},
		{"", "\n"},
	};
	static const char *const other[][2] = {
		{"1", "2"},    {"0-1", "0-2"},	{"1", ""},	     {"performance", "powersave"},
		{"1", "11"},   {"0", "Y"},	{"0-99999", "0"},    {"1-0", "0-1"},
		{"1,", "1"},   {"ff,f", "fff"}, {"4294967297", "1"}, {"max 100", "max100"},
		{"10", "100"}, {"-1", "1"},	{"0,", "0x"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		assert_true(setting_same(same[i][0], same[i][1]));
		assert_true(setting_same(same[i][1], same[i][0]));
	}
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		assert_false(setting_same(other[i][0], other[i][1]));
		assert_false(setting_same(other[i][1], other[i][0]));
	}
}

static void check_selected(const char *text, const char *wanted)
{
	char *word = setting_selected(text);

	if (wanted)
		assert_string_equal(word, wanted);
	else
		assert_null(word);
	free(word);
}

static void a_selector_gives_its_word(void **state)
{
	(void)state;
	check_selected("always [madvise] never", "madvise");
	check_selected("[none] mq-deadline", "none");
	check_selected("[none]", "none");
	check_selected("s2idle [deep]", "deep");
	check_selected("none voluntary (full) lazy ", "full");
	check_selected("(full) lazy ", "full");
	check_selected("full (lazy)", "lazy");
	check_selected("a [b] (c)", "b");
	check_selected("a (b) (c)", NULL);
	check_selected("Core(TM) i5", NULL);
	check_selected("(a b)", NULL);
	check_selected("a [b] [c]", NULL);
	check_selected("a[b]", NULL);
	check_selected("[b]c", NULL);
	check_selected("[]", NULL);
	check_selected("[a b]", NULL);
	check_selected("]x[", NULL);
	check_selected("[", NULL);
	check_selected("", NULL);
}

static void a_file_on_disk_keeps_every_byte(void **state)
{
	char path[] = "/tmp/rtgauge-test-XXXXXX";
	char *value;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "always [madvise]\nnext\n", 22), 22);
	assert_int_equal(0, setting_read(path, false, &value));
	assert_string_equal(value, "always [madvise]\nnext\n");
	free(value);
	assert_int_equal(0, setting_write(path, false, "x"));
	assert_int_equal(0, setting_read(path, false, &value));
	assert_string_equal(value, "x");
	free(value);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, "\xff\xfe", 2, 0), 2);
	assert_int_equal(setting_read(path, false, &value), EILSEQ);
	assert_int_equal(ftruncate(fd, SETTING_MAX_LEN + 1), 0);
	assert_int_equal(setting_read(path, false, &value), EFBIG);
	close(fd);
	unlink(path);
	assert_int_equal(setting_read(path, false, &value), ENOENT);
	assert_int_equal(setting_write(path, false, "x"), ENOENT);
	assert_int_equal(setting_write("/dev/null", false, "x"), EINVAL);
}

static void a_kernel_file_that_is_busy_is_written_again(void **state)
{
	char path[] = "/tmp/rtgauge-setting-XXXXXX", *value;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	busy = 2;
	assert_int_equal(setting_write(path, true, "off"), 0);
	assert_int_equal(busy, 0);
	assert_int_equal(setting_read(path, true, &value), 0);
	assert_string_equal(value, "off");
	free(value);
	unlink(path);
}

static void kernel_files_are_volatile(void **state)
{
	(void)state;
	assert_true(setting_is_volatile("/proc/sys/kernel/ostype"));
	assert_true(setting_is_volatile("/tmp/../proc/sys/kernel/ostype"));
	assert_true(setting_is_volatile("/sys/no/such/thing"));
	assert_false(setting_is_volatile("/etc/hostname"));
	assert_false(setting_is_volatile("/system"));
}

static void threads_and_groups_have_names(void **state)
{
	static const char *const names[] = {"/proc/x",
					    "thread:1:0:policy",
					    "thread:77:123:affinity",
					    "group:/sys/fs/cgroup/a",
					    "controller:cpuset:/sys/fs/cgroup",
					    "module:/tmp/a b/x_1.ko",
					    "module:/tmp/a b/x_1.ko n=1 file=/tmp/y",
					    "module:/lib/a-b.ko.xz"};
	static const char *const others[] = {
		"",
		"proc/x",
		"thread:",
		"thread:0:1:policy",
		"thread:1:policy",
		"thread:1:2:nice",
		"thread:1:2:policy:",
		"thread:-1:2:policy",
		"thread:99999999999:2:policy",
		"thread:1:99999999999999999999:policy",
		"group:",
		"group:a/b",
		"controller:/sys",
		"controller:CPU:/sys",
		"controller:cpuset:sys",
		"module:",
		"module:x.ko",
		"module:/tmp/.ko",
		"module:/tmp/x",
		"module:/tmp/x.ko/",
		"module:/tmp/x.ko.bz2",
		"module:/tmp/x y.ko",
		"module:/tmp/x n=1.ko",
		"module:/tmp/x1234567890123456789012345678901234567890123456789012345.ko"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(setting_is_name(names[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(setting_is_name(others[i]));
	assert_true(setting_is_volatile("thread:1:0:policy"));
	assert_true(setting_is_volatile("group:/sys/fs/cgroup/a"));
	assert_true(setting_is_volatile("module:/tmp/x.ko"));
}

static void several_lines_of_a_kernel_file_are_refused(void **state)
{
	char *value;

	(void)state;
	assert_int_equal(setting_read("/proc/self/status", true, &value), AGENT_MULTI_LINE);
	assert_null(value);
	assert_int_equal(0, setting_read("/proc/sys/kernel/ostype", true, &value));
	assert_string_equal(value, "Linux");
	free(value);
}

/* Reads it from a file that ends as Cobalt's clock does. */
static int read_clock(const char *text, char **value)
{
	static const char *const parts[] = {"", "/xenomai", "/xenomai/clock", "/xenomai/clock/coreclk"};
	char root[] = "/tmp/rtgauge-clock-XXXXXX", paths[4][64];
	FILE *file;
	int error;

	assert_non_null(mkdtemp(root));
	for (int i = 0; i < 4; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s%s", root, parts[i]);
		assert_true(i == 0 || i == 3 || !mkdir(paths[i], 0700));
	}
	file = fopen(paths[3], "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	error = setting_read(paths[3], true, value);
	assert_int_equal(unlink(paths[3]), 0);
	for (int i = 2; i >= 0; i--)
		assert_int_equal(rmdir(paths[i]), 0);
	return error;
}

static void the_gravity_of_cobalts_clock_is_read_as_it_is_written(void **state)
{
	static const char *const others[] = {
		"gravity: irq=0 kernel=2000\n devices: timer=lapic\n",
		"gravity: irq= kernel=2000 user=2000\n devices: timer=lapic\n",
		" id: 1\ngravity: irq=0 kernel=2000 user=2000\n",
	};
	char *value;

	(void)state;
	/* ext/cokernel/tests/data/cobalt-coreclk.txt */
	assert_int_equal(0, read_clock("gravity: irq=0 kernel=2000 user=2000\n"
				       " devices: timer=lapic, clock=<Linux clocksource>\n"
				       "watchdog: off\n"
				       "  ticks: 677114992114 (009d a732d5f2)\n",
				       &value));
	assert_string_equal(value, "0i 2000k 2000u");
	free(value);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(read_clock(others[i], &value), AGENT_MULTI_LINE);
		assert_null(value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_value_is_known_in_its_other_forms),
		cmocka_unit_test(a_selector_gives_its_word),
		cmocka_unit_test(the_gravity_of_cobalts_clock_is_read_as_it_is_written),
		cmocka_unit_test(a_file_on_disk_keeps_every_byte),
		cmocka_unit_test(a_kernel_file_that_is_busy_is_written_again),
		cmocka_unit_test(kernel_files_are_volatile),
		cmocka_unit_test(threads_and_groups_have_names),
		cmocka_unit_test(several_lines_of_a_kernel_file_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
