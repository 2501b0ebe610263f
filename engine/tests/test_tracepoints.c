// SPDX-License-Identifier: MIT
/* tracepoints: dynamic events among those of others. A folder takes the place of tracefs. */
#include "trace/tracepoints.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cm.h"

#define INSTANCE "rtgauge-0a-explain"
#define GROUP "rtgauge_0a_explain"
#define OTHERS 4096 /* bytes of the events of others */

static char place[64];
static int root = -1;

static int make_tracefs(void **state)
{
	char others[OTHERS];
	int fd;
	bool written;

	(void)state;
	snprintf(place, sizeof(place), "/tmp/rtgauge-tracepoints-XXXXXX");
	if (!mkdtemp(place))
		return -1;
	root = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || mkdirat(root, "events", 0700))
		return -1;
	memset(others, 'o', sizeof(others));
	fd = openat(root, "dynamic_events", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	written = fd >= 0 && write(fd, others, sizeof(others)) == OTHERS;
	close(fd);
	return written ? 0 : -1;
}

static int remove_tracefs(void **state)
{
	(void)state;
	unlinkat(root, "dynamic_events", 0);
	unlinkat(root, "events/" GROUP, AT_REMOVEDIR);
	unlinkat(root, "events", AT_REMOVEDIR);
	close(root);
	return rmdir(place);
}

/* A file that is opened to be emptied makes the kernel remove the events of everybody. */
static void assert_begins(const char *wanted)
{
	char text[OTHERS + 1] = "";
	int fd = openat(root, "dynamic_events", O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, text, sizeof(text)), OTHERS);
	close(fd);
	assert_memory_equal(text, wanted, strlen(wanted));
}

static void test_events_are_made_in_a_group_with_the_name_of_the_instance(void **state)
{
	(void)state;
	tracepoints_create(root, INSTANCE);
	assert_begins("t:" GROUP "/sched_set_need_resched sched_set_need_resched_tp cpu tif\n");
	assert_false(tracepoints_exist(root, INSTANCE));
}

static void test_only_the_events_of_the_instance_are_removed(void **state)
{
	(void)state;
	assert_int_equal(tracepoints_remove(root, INSTANCE), 0);
	assert_begins("ooo");
	assert_int_equal(mkdirat(root, "events/" GROUP, 0700), 0);
	assert_true(tracepoints_exist(root, INSTANCE));
	assert_int_equal(tracepoints_remove(root, INSTANCE), 0);
	assert_begins("-:" GROUP "/\nooo");
}

static void test_what_the_kernel_refuses_is_reported(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(root, "events/" GROUP, 0700), 0);
	assert_int_equal(unlinkat(root, "dynamic_events", 0), 0);
	assert_int_equal(mkdirat(root, "dynamic_events", 0700), 0);
	assert_int_equal(tracepoints_remove(root, INSTANCE), EISDIR);
	assert_int_equal(unlinkat(root, "dynamic_events", AT_REMOVEDIR), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_events_are_made_in_a_group_with_the_name_of_the_instance,
						make_tracefs, remove_tracefs),
		cmocka_unit_test_setup_teardown(test_only_the_events_of_the_instance_are_removed,
						make_tracefs, remove_tracefs),
		cmocka_unit_test_setup_teardown(test_what_the_kernel_refuses_is_reported, make_tracefs,
						remove_tracefs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
