// SPDX-License-Identifier: MIT
/* Which events of system calls are used, on a tree of files like the kernel's. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/watch/call_events.h"
#include "tests/cm.h"

#define FORMAT                                                                                               \
	"name: any\nID: %u\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"             \
	"\tfield:%s;\toffset:8;\tsize:%u;\tsigned:1;\n\tfield:%s;\toffset:%u;\tsize:%u;\tsigned:0;\n"
#define NUMBER "int __syscall_nr"

static struct call_events events;

/* Writes a file below the folder, and the folders above it. */
static void put(int folder, const char *path, const char *text)
{
	char part[200];
	int fd;

	for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		mkdirat(folder, part, 0700);
	}
	fd = openat(folder, path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void put_event(int folder, const char *name, unsigned int id, const char *first,
		      unsigned int first_size, const char *second, unsigned int at, unsigned int size)
{
	char path[200], text[600];

	snprintf(path, sizeof(path), "events/%s/format", name);
	snprintf(text, sizeof(text), FORMAT, id, first, first_size, second, at, size);
	put(folder, path, text);
	snprintf(path, sizeof(path), "events/%s/enable", name);
	put(folder, path, "0");
	snprintf(path, sizeof(path), "events/%s/filter", name);
	put(folder, path, "none");
}

static const char *content(int folder, const char *path)
{
	static char text[TRACE_TEXT_MAX];

	assert_true(trace_read(folder, path, text));
	return text;
}

/* A kernel's folder. by_name: it has events of single calls. */
static int make_tree(bool by_name)
{
	char path[] = "/tmp/rtgauge-call-events-XXXXXX";
	int folder;

	assert_non_null(mkdtemp(path));
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(folder >= 0);
	put_event(folder, "raw_syscalls/sys_enter", 20, "long id", 8, "unsigned long args[6]", 16, 48);
	put_event(folder, "raw_syscalls/sys_exit", 21, "long id", 8, "long ret", 16, 8);
	if (by_name) {
		put_event(folder, "syscalls/sys_enter_read", 31, NUMBER, 4, "unsigned int fd", 16, 8);
		put_event(folder, "syscalls/sys_exit_read", 30, NUMBER, 4, "long ret", 16, 8);
		put_event(folder, "syscalls/sys_enter_clock_nanosleep", 33, NUMBER, 4,
			  "clockid_t which_clock", 16, 8);
		put_event(folder, "syscalls/sys_exit_clock_nanosleep", 32, NUMBER, 4, "long ret", 16, 8);
		put_event(folder, "syscalls/sys_enter_getppid", 35, NUMBER, 4, "long none", 16, 8);
		put(folder, TRACE_USER_DATA, "63");
	}
	return folder;
}

static void remove_tree(int folder)
{
	char command[128];

	call_events_close(&events);
	snprintf(command, sizeof(command), "rm -r \"$(readlink /proc/%d/fd/%d)\"", (int)getpid(), folder);
	assert_int_equal(system(command), 0);
	close(folder);
}

static void find(int folder, enum call_table table)
{
	memset(&events, 0, sizeof(events));
	call_events_find(&events, folder, table);
}

/* The events of all calls, with a filter. */
static void check_all_calls(int folder)
{
	assert_int_equal(events.count, 2);
	assert_int_equal(events.edges[20], CALL_BEGINS);
	assert_int_equal(events.edges[21], CALL_ENDS);
	assert_int_equal(events.arguments.size, 48);
	assert_int_equal(events.number.size, 8);
	assert_non_null(strstr(content(folder, "events/raw_syscalls/sys_exit/filter"), "||id=="));
}

static void test_calls_that_can_wait_by_name(void **state)
{
	int folder = make_tree(true);
	const char *name;

	(void)state;
	find(folder, CALLS_NATIVE);
	if (sizeof(long) != 8) {
		check_all_calls(folder);
		remove_tree(folder);
		return;
	}
	assert_int_equal(events.count, 4);
	assert_int_equal(events.edges[31], CALL_BEGINS);
	assert_int_equal(events.edges[32], CALL_ENDS);
	assert_int_equal(events.edges[35], NO_CALL); /* it cannot wait */
	assert_int_equal(events.edges[20], NO_CALL);
	assert_int_equal(events.number.offset, 8);
	assert_int_equal(events.arguments.offset, 16);
	assert_int_equal(events.arguments.size, 48);
	assert_int_equal(events.result.offset, 16);
	assert_string_equal(content(folder, "events/syscalls/sys_enter_read/filter"), "none");
	assert_string_equal(content(folder, TRACE_USER_DATA), "0");
	assert_true(call_events_enable(&events, folder, true, &name));
	assert_string_equal(content(folder, "events/syscalls/sys_exit_clock_nanosleep/enable"), "1");
	assert_string_equal(content(folder, "events/raw_syscalls/sys_enter/enable"), "0");
	remove_tree(folder);
}

static void test_32_bit_program_has_no_names(void **state)
{
	int folder = make_tree(true);

	(void)state;
	find(folder, CALLS_32_BIT);
	check_all_calls(folder);
	remove_tree(folder);
}

static void test_kernel_without_names(void **state)
{
	int folder = make_tree(false);

	(void)state;
	find(folder, CALLS_NATIVE);
	check_all_calls(folder);
	remove_tree(folder);
}

static void test_kernel_without_calls(void **state)
{
	char path[] = "/tmp/rtgauge-call-events-XXXXXX";
	int folder;

	(void)state;
	assert_non_null(mkdtemp(path));
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	find(folder, CALLS_NATIVE);
	assert_int_equal(events.count, 0);
	remove_tree(folder);
}

static void test_every_call_has_events(void **state)
{
	char list[CALL_EVENTS_MAX];

	(void)state;
	blocking_calls_events(list);
	assert_non_null(
		strstr(list, "syscalls/sys_enter_clock_nanosleep,syscalls/sys_exit_clock_nanosleep,"));
	assert_non_null(strstr(list, "syscalls/sys_exit_clone,")); /* from the end of the table */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_that_can_wait_by_name),
		cmocka_unit_test(test_32_bit_program_has_no_names),
		cmocka_unit_test(test_kernel_without_names),
		cmocka_unit_test(test_kernel_without_calls),
		cmocka_unit_test(test_every_call_has_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
