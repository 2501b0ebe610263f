// SPDX-License-Identifier: MIT
/* What the recorder does with its sessions, and with what others left in tracefs: a folder takes its place.
 */
#include "ext/recorder/engine/record.c" /* NOLINT(bugprone-suspicious-include): its parts are static */

#include "tests/check.h"
#include "tests/cm.h"

static char path[64];

static int make_tracefs(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/rtgauge-record-XXXXXX");
	if (!mkdtemp(path))
		return -1;
	recorder.root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (recorder.root < 0 || mkdirat(recorder.root, "instances", 0700) ||
	    mkdirat(recorder.root, "events", 0700))
		return -1;
	close(openat(recorder.root, "dynamic_events", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	recorder.instances = openat(recorder.root, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return recorder.instances < 0 ? -1 : 0;
}

static int remove_tracefs(void **state)
{
	char command[100];

	(void)state;
	close(recorder.instances);
	close(recorder.root);
	snprintf(command, sizeof(command), "rm -rf %s", path);
	return system(command); /* NOLINT(cert-env33-c): a constant path */
}

static void make(const char *folder, const char *name)
{
	char place[160];

	snprintf(place, sizeof(place), "%s/%s", folder, name);
	assert_int_equal(mkdirat(recorder.root, place, 0700), 0);
}

static bool exists(const char *name)
{
	return !faccessat(recorder.instances, name, F_OK, 0);
}

static void assert_written(const char *wanted)
{
	char text[512] = "";
	int fd = openat(recorder.root, "dynamic_events", O_RDONLY | O_CLOEXEC);

	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	assert_string_equal(text, wanted);
}

static void an_instance_goes_with_its_events(void **state)
{
	(void)state;
	make("instances", "rtgauge-recorder-7-t9-1");
	make("instances", "rtgauge-recorder-7-t9-1-explain");
	make("events", "rtgauge_recorder_7_t9_1_explain");
	remove_instance("rtgauge-recorder-7-t9-1");
	assert_written("");
	remove_instance("rtgauge-recorder-7-t9-1-explain");
	assert_written("-:rtgauge_recorder_7_t9_1_explain/\n");
	assert_false(exists("rtgauge-recorder-7-t9-1") || exists("rtgauge-recorder-7-t9-1-explain"));
}

static void what_killed_recorders_left_goes(void **state)
{
	char alive[80], older[80], reused[80];
	struct process self;

	(void)state;
	assert_true(process_read(getpid(), &self));
	snprintf(alive, sizeof(alive), PREFIX "%d-t%lld-1", (int)getpid(), (long long)self.start);
	snprintf(older, sizeof(older), PREFIX "%d-7",
		 (int)getpid()); /* its version did not write the start */
	snprintf(reused, sizeof(reused), PREFIX "%d-t%lld-1", (int)getpid(), (long long)self.start + 1);
	make("instances", alive);
	make("instances", older);
	make("instances", reused);
	make("instances", PREFIX "1073741824-1"); /* no process has such a number */
	make("instances", "somebody");
	make("events", "sched");
	make("events", GROUP_PREFIX "1073741824_t5_2_explain");
	remove_leftovers();
	assert_true(exists(alive) && exists(older) && exists("somebody"));
	assert_false(exists(reused) || exists(PREFIX "1073741824-1"));
	assert_written("-:" GROUP_PREFIX "1073741824_t5_2_explain/\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_instance_goes_with_its_events, make_tracefs,
						remove_tracefs),
		cmocka_unit_test_setup_teardown(what_killed_recorders_left_goes, make_tracefs,
						remove_tracefs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
