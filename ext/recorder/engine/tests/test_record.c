// SPDX-License-Identifier: MIT
/* What the recorder does with its sessions, and with what others left in tracefs: a folder takes its place.
 */
#include "ext/recorder/engine/record.c" /* NOLINT(bugprone-suspicious-include): its parts are static */

#include <inttypes.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/check.h"
#include "tests/cm.h"

static char path[64];
static int stops; /* so many next readings of CLOCK_BOOTTIME come late */

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock == CLOCK_BOOTTIME && stops > 0) {
		stops--;
		usleep(2 * SUSPENDED_NS / 1000);
	}
	return (int)syscall(SYS_clock_gettime, clock, now);
}

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
	snprintf(recorder.sessions[1].instances[0], sizeof(recorder.sessions[1].instances[0]), "%s", alive);
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
	recorder.sessions[1].instances[0][0] = '\0';
}

/* The kernel refuses to remove an instance that somebody uses (EBUSY), as a folder that is not empty. */
static void what_could_not_be_removed_goes_later(void **state)
{
	char used[80], inside[100], group[80];
	struct process self;

	(void)state;
	assert_true(process_read(getpid(), &self));
	snprintf(used, sizeof(used), PREFIX "%d-t%lld-1", (int)getpid(), (long long)self.start);
	snprintf(group, sizeof(group), GROUP_PREFIX "%d_t%lld_1", (int)getpid(), (long long)self.start);
	snprintf(inside, sizeof(inside), "instances/%s", used);
	make("instances", used);
	make(inside, "used");
	make("events", group);
	remove_instance(used);
	assert_true(exists(used));
	snprintf(inside, sizeof(inside), "%s/used", used);
	assert_int_equal(unlinkat(recorder.instances, inside, AT_REMOVEDIR), 0);
	snprintf(recorder.sessions[0].instances[1], sizeof(recorder.sessions[0].instances[1]), "%s", used);
	remove_leftovers();
	assert_true(exists(used));
	recorder.sessions[0].instances[1][0] = '\0';
	remove_leftovers();
	assert_false(exists(used));
}

/* Begins a session whose `watch` is a child that says nothing. */
static struct session *begun(void)
{
	struct session *s = &recorder.sessions[0];
	int from[2];

	*s = (struct session){.begun_ns = now_ns(), .file.fd = -1};
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	s->out = from[0];
	s->in = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_int_equal(spool_begin(&recorder.spool, &s->file), 0);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (!s->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	close(from[1]);
	recorder.now = s;
	return s;
}

static int make_recorder(void **state)
{
	char place[96];

	if (make_tracefs(state))
		return -1;
	snprintf(place, sizeof(place), "%s/spool", path);
	stop_asked = 0;
	recorder.said[0] = '\0';
	recorder.now = recorder.next = NULL;
	return spool_open(&recorder.spool, place, SPOOL_BYTES_MIN);
}

static int remove_recorder(void **state)
{
	spool_close(&recorder.spool);
	return remove_tracefs(state);
}

/* Returns how often the log has a text. */
static int logged(const char *wanted)
{
	struct bytes log;
	char place[96];
	int count = 0;

	snprintf(place, sizeof(place), "%s/spool/log.ndjson", path);
	assert_int_equal(file_read(place, 1 << 20, &log), 0);
	for (const char *at = log.data; (at = strstr(at, wanted)); at++)
		count++;
	free(log.data);
	return count;
}

static void a_session_that_does_not_begin_is_killed(void **state)
{
	struct session *s = begun();

	(void)state;
	kill_if_late(s, s->begun_ns + ARM_NS - 1);
	assert_null(s->killed);
	kill_if_late(s, s->begun_ns + ARM_NS);
	assert_non_null(s->killed);
	while (s->pid)
		wait_for_lines(now_ns());
	assert_null(recorder.now);
	assert_int_equal(logged("did not begin within 60 s"), 1);
	assert_int_equal(logged("it ended early"), 0);
}

static void a_session_that_does_not_end_is_killed(void **state)
{
	struct session *s = begun();

	(void)state;
	s->armed = true;
	kill_if_late(s, s->begun_ns + SESSION_NS);
	assert_null(s->killed);
	stop(s);
	kill_if_late(s, s->stopped_ns + END_NS - 1);
	assert_null(s->killed);
	s->stopped_ns -= END_NS;
	end_sessions();
	assert_int_equal(s->pid, 0);
	assert_int_equal(logged("did not stop within 10 s"), 1);
}

static void the_same_failure_is_logged_again_after_a_session_began(void **state)
{
	(void)state;
	failed("it ended early");
	failed("it ended early");
	assert_int_equal(logged("it ended early"), 1);
	has_begun(begun());
	assert_int_equal(logged("session begins"), 1);
	kill(recorder.now->pid, SIGKILL);
	while (recorder.now)
		wait_for_lines(now_ns());
	assert_int_equal(logged("it ended early"), 2);
}

/* On a busy machine, something else has the CPU between two readings. */
static void a_pause_between_two_readings_is_no_suspend(void **state)
{
	int64_t before_ns = suspended_ns(), monotonic_ns = 0, boottime_ns = 0;
	char text[200] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");
	struct json j;

	(void)state;
	assert_non_null(out);
	stops = 3;
	json_start(&j, out);
	clocks_json(&j);
	json_line(&j);
	fclose(out);
	stops = 0;
	assert_int_equal(sscanf(text, "\"monotonic_ns\":%" SCNd64 ",\"boottime_ns\":%" SCNd64, &monotonic_ns,
				&boottime_ns),
			 2);
	assert_true(boottime_ns - monotonic_ns - before_ns < SUSPENDED_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_between_two_readings_is_no_suspend),
		cmocka_unit_test_setup_teardown(what_could_not_be_removed_goes_later, make_tracefs,
						remove_tracefs),
		cmocka_unit_test_setup_teardown(an_instance_goes_with_its_events, make_tracefs,
						remove_tracefs),
		cmocka_unit_test_setup_teardown(what_killed_recorders_left_goes, make_tracefs,
						remove_tracefs),
		cmocka_unit_test_setup_teardown(a_session_that_does_not_begin_is_killed, make_recorder,
						remove_recorder),
		cmocka_unit_test_setup_teardown(a_session_that_does_not_end_is_killed, make_recorder,
						remove_recorder),
		cmocka_unit_test_setup_teardown(the_same_failure_is_logged_again_after_a_session_began,
						make_recorder, remove_recorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
