// SPDX-License-Identifier: MIT
/* Whether a range of numbers or the kernel chooses the threads, on a tree of files like the kernel's. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/watch/thread_filter.h"
#include "tests/cm.h"
#include "trace/instance.h"

#define EVENT "sched/sched_switch"
#define FILTER "events/" EVENT "/filter"

static const char *const both[2] = {"prev_pid", "next_pid"}, *const one[2] = {"common_pid", NULL};
static char path[64];
static int folder;

static void put(const char *name)
{
	int fd = openat(folder, name, O_CREAT | O_WRONLY | O_TRUNC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static int make_tree(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/rtgauge-thread-filter-XXXXXX");
	assert_non_null(mkdtemp(path));
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(folder >= 0);
	assert_int_equal(mkdirat(folder, "events", 0700), 0);
	assert_int_equal(mkdirat(folder, "events/sched", 0700), 0);
	assert_int_equal(mkdirat(folder, "events/" EVENT, 0700), 0);
	put(FILTER);
	put("set_event_pid");
	return 0;
}

static int remove_tree(void **state)
{
	(void)state;
	unlinkat(folder, FILTER, 0);
	unlinkat(folder, "set_event_pid", 0);
	unlinkat(folder, "events/" EVENT, AT_REMOVEDIR);
	unlinkat(folder, "events/sched", AT_REMOVEDIR);
	unlinkat(folder, "events", AT_REMOVEDIR);
	close(folder);
	return rmdir(path);
}

static void check_file(const char *name, const char *expected)
{
	char text[TRACE_TEXT_MAX];

	assert_true(trace_read(folder, name, text));
	assert_string_equal(text, expected);
}

/* No thread of the kernel has a number above 4,194,304, so the engine is in none of these ranges. */
static void test_close_numbers_are_a_range(void **state)
{
	struct thread_filter filter;

	(void)state;
	assert_true(thread_filter_begin(&filter, folder, (const pid_t[]){5000120, 5000100}, 2, true));
	assert_true(thread_filter_write(&filter, EVENT, both));
	check_file(FILTER, "(prev_pid>=5000100&&prev_pid<=5000184)||(next_pid>=5000100&&next_pid<=5000184)");
	assert_true(thread_filter_write(&filter, EVENT, one));
	check_file(FILTER, "common_pid>=5000100&&common_pid<=5000184");
	check_file("set_event_pid", "");
}

static void test_a_later_thread_may_be_in_the_range(void **state)
{
	struct thread_filter filter;

	(void)state;
	assert_true(thread_filter_begin(&filter, folder, (const pid_t[]){5000100}, 1, true));
	assert_false(thread_filter_add(&filter, (const pid_t[]){5000164}, 1));
	assert_true(thread_filter_add(&filter, (const pid_t[]){5000229}, 1));
	assert_true(thread_filter_write(&filter, EVENT, one));
	check_file(FILTER, "common_pid>=5000100&&common_pid<=5000293");
}

static void test_the_engine_is_not_in_the_range(void **state)
{
	struct thread_filter filter;
	const int first = (int)getpid() - 3;
	char expected[400];

	(void)state;
	assert_true(thread_filter_begin(&filter, folder, (const pid_t[]){first}, 1, true));
	assert_true(thread_filter_write(&filter, EVENT, one));
	snprintf(expected, sizeof(expected), "common_pid>=%d&&common_pid<=%d&&common_pid!=%d", first,
		 first + 64, first + 3);
	check_file(FILTER, expected);
	assert_true(thread_filter_write(&filter, EVENT, both));
	snprintf(expected, sizeof(expected),
		 "(prev_pid>=%d&&prev_pid<=%d&&prev_pid!=%d)||(next_pid>=%d&&next_pid<=%d&&next_pid!=%d)",
		 first, first + 64, first + 3, first, first + 64, first + 3);
	check_file(FILTER, expected);
}

static void test_distant_numbers_are_the_kernels(void **state)
{
	struct thread_filter filter;

	(void)state;
	assert_true(thread_filter_begin(&filter, folder, (const pid_t[]){5000100, 5009000}, 2, true));
	assert_true(filter.by_kernel);
	check_file("set_event_pid", "5000100 5009000 ");
}

static void test_a_distant_later_thread_makes_all_the_kernels(void **state)
{
	struct thread_filter filter;

	(void)state;
	assert_true(thread_filter_begin(&filter, folder, (const pid_t[]){5000100}, 1, true));
	assert_true(thread_filter_write(&filter, EVENT, both));
	assert_true(thread_filter_add(&filter, (const pid_t[]){5009000}, 1));
	check_file("set_event_pid", "5000100 5009000 ");
	assert_true(thread_filter_write(&filter, EVENT, both));
	check_file(FILTER, "0");
}

static void test_without_ranges_the_kernel_chooses(void **state)
{
	struct thread_filter filter;

	(void)state;
	assert_true(thread_filter_begin(&filter, folder, (const pid_t[]){5000100}, 1, false));
	check_file("set_event_pid", "5000100 ");
	assert_false(thread_filter_add(&filter, (const pid_t[]){5000101}, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_close_numbers_are_a_range, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_a_later_thread_may_be_in_the_range, make_tree,
						remove_tree),
		cmocka_unit_test_setup_teardown(test_the_engine_is_not_in_the_range, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_distant_numbers_are_the_kernels, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_a_distant_later_thread_makes_all_the_kernels, make_tree,
						remove_tree),
		cmocka_unit_test_setup_teardown(test_without_ranges_the_kernel_chooses, make_tree,
						remove_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
