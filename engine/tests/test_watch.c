// SPDX-License-Identifier: MIT
/* watch: activations from wake-ups and switches, threads from /proc. */
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

#include "probes/watch/activations.h"
#include "probes/watch/blocking_calls.h"
#include "probes/watch/threads.h"
#include "tests/check.h"
#include "tests/cm.h"

#define TID 7

static struct watch_activation activation;
static bool preempted;

static bool waking_from(struct watch_track *track, int64_t time_ns, int cpu, pid_t current)
{
	const struct sched_event event = {
		.time_ns = time_ns, .kind = SCHED_WAKING, .to = TID, .cpu = cpu, .current = current};

	return watch_track_event(track, &event, &activation, &preempted);
}

static bool waking(struct watch_track *track, int64_t time_ns)
{
	return waking_from(track, time_ns, 0, 1);
}

static bool runs(struct watch_track *track, int64_t time_ns, int cpu)
{
	const struct sched_event event = {
		.time_ns = time_ns, .kind = SCHED_SWITCH, .from = 1, .to = TID, .cpu = cpu};

	return watch_track_event(track, &event, &activation, &preempted);
}

static bool leaves(struct watch_track *track, int64_t time_ns, bool runnable)
{
	const struct sched_event event = {
		.time_ns = time_ns, .kind = SCHED_SWITCH, .from = TID, .to = 1, .runnable = runnable};

	return watch_track_event(track, &event, &activation, &preempted);
}

static void an_activation_is_from_the_wake_up_to_the_sleep(void **state)
{
	struct watch_track track = {.tid = TID};

	(void)state;
	assert_false(waking(&track, 100));
	assert_true(runs(&track, 130, 3));
	assert_int_equal(activation.start_ns - activation.release_ns, 30);
	assert_int_equal(activation.cpu, 3);
	assert_int_equal(activation.period_ns, 0);
	assert_false(activation.done);
	assert_false(leaves(&track, 150, true));
	assert_true(preempted);
	assert_false(runs(&track, 190, 2));
	assert_true(leaves(&track, 200, false));
	assert_false(preempted);
	assert_true(activation.done);
	assert_int_equal(activation.end_ns - activation.release_ns, 100);
	assert_int_equal(activation.execution_ns, 30);
	assert_int_equal(activation.cpu, 3);
	assert_false(waking(&track, 1100));
	assert_true(runs(&track, 1105, 0));
	assert_int_equal(activation.period_ns, 1000);
}

static bool is_held(struct watch_track *track, int64_t time_ns)
{
	const struct sched_event event = {
		.time_ns = time_ns, .kind = SCHED_SWITCH, .from = TID, .to = 1, .held = true};

	return watch_track_event(track, &event, &activation, &preempted);
}

static void an_activation_goes_on_while_its_thread_is_held(void **state)
{
	struct watch_track track = {.tid = TID};

	(void)state;
	waking(&track, 100);
	assert_true(runs(&track, 110, 0));
	assert_false(is_held(&track, 120));
	assert_false(preempted);
	assert_false(waking(&track, 300));
	assert_false(runs(&track, 310, 0));
	assert_true(leaves(&track, 330, false));
	assert_int_equal(activation.end_ns - activation.release_ns, 230);
	assert_int_equal(activation.execution_ns, 30);
	waking(&track, 1100);
	assert_true(runs(&track, 1110, 0));
	assert_int_equal(activation.period_ns, 1000);
}

static void what_began_before_is_undetermined(void **state)
{
	struct watch_track track = {.tid = TID};

	(void)state;
	assert_false(runs(&track, 10, 0));
	assert_false(leaves(&track, 20, false));
	assert_false(waking(&track, 100));
	assert_true(runs(&track, 101, 0));
	assert_true(leaves(&track, 102, false));
}

static void a_wake_up_before_it_sleeps_begins_nothing(void **state)
{
	struct watch_track track = {.tid = TID};

	(void)state;
	waking(&track, 100);
	runs(&track, 110, 0);
	assert_false(waking_from(&track, 120, 0, TID));
	assert_int_equal(track.unended, 0);
	assert_false(leaves(&track, 130, true));
	assert_false(waking(&track, 135));
	assert_false(runs(&track, 140, 0));
	assert_true(leaves(&track, 150, false));
	assert_int_equal(activation.release_ns, 100);
	assert_int_equal(activation.execution_ns, 30);
}

static void what_needs_no_switch_is_told_without_it(void **state)
{
	struct watch_track track = {.tid = TID};

	(void)state;
	waking(&track, 100);
	assert_true(leaves(&track, 150, false));
	assert_true(activation.done);
	assert_false(activation.begun);
	assert_false(activation.executed);
	assert_int_equal(activation.end_ns - activation.release_ns, 50);
	assert_int_equal(activation.latency_bound_ns, 50);
	waking(&track, 200);
	assert_true(runs(&track, 210, 0));
	assert_int_equal(activation.period_ns, 100);
	assert_true(activation.begun);
	assert_true(leaves(&track, 220, false));
	assert_true(activation.executed);
	assert_int_equal(track.unended, 0);
}

static void a_system_call_bounds_the_latency(void **state)
{
	struct watch_track track = {.tid = TID};
	const struct sched_event call = {
		.time_ns = 112, .kind = SCHED_SYSCALL, .current = TID, .to = TID, .cpu = 1};

	(void)state;
	waking(&track, 100);
	watch_track_runs(&track, &call);
	assert_true(leaves(&track, 400, false));
	assert_int_equal(activation.latency_bound_ns, 12);
	assert_false(activation.begun);
	assert_false(activation.executed);
}

static void an_unseen_return_after_a_preemption_leaves_the_response(void **state)
{
	struct watch_track track = {.tid = TID};

	(void)state;
	waking(&track, 100);
	assert_true(runs(&track, 110, 0));
	assert_false(leaves(&track, 120, true));
	assert_false(leaves(&track, 180, true)); /* it was not seen to run again */
	assert_true(preempted);
	assert_false(runs(&track, 190, 0));
	assert_true(leaves(&track, 200, false));
	assert_int_equal(activation.end_ns - activation.release_ns, 100);
	assert_true(activation.begun);
	assert_false(activation.executed);
}

static void a_thread_that_slept_unseen_begins_anew(void **state)
{
	struct watch_track track = {.tid = TID};

	(void)state;
	waking(&track, 100);
	assert_true(runs(&track, 110, 0));
	assert_false(waking(&track, 1100)); /* on its own CPU, which runs another task */
	assert_int_equal(track.unended, 1);
	assert_true(runs(&track, 1105, 0));
	assert_int_equal(activation.release_ns, 1100);
	assert_int_equal(activation.period_ns, 1000);
	assert_false(waking_from(&track, 2100, 1, 3)); /* another CPU's: it may continue */
	assert_int_equal(track.unended, 1);
	assert_true(runs(&track, 2106, 0)); /* it did not */
	assert_int_equal(track.unended, 2);
	assert_int_equal(activation.release_ns, 2100);
	assert_true(leaves(&track, 2110, false));
	assert_int_equal(activation.end_ns - activation.release_ns, 10);
}

static void after_lost_events_it_begins_anew(void **state)
{
	struct watch_track track = {.tid = TID};

	(void)state;
	waking(&track, 100);
	runs(&track, 110, 0);
	watch_track_lost(&track);
	assert_false(leaves(&track, 5000, false));
	assert_false(waking(&track, 6000));
	assert_true(runs(&track, 6001, 0));
	assert_int_equal(activation.period_ns, 0);
}

static void a_thread_is_read_whatever_its_name(void **state)
{
	static const char text[] =
		"42 (a) R (b) S 1 2 3 4 5 6 77 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 "
		"29 30 31 32 33 34 35 36 88 1 41 42\n";
	struct watched_thread thread;
	struct thread_counts counts = {0};

	(void)state;
	assert_true(thread_parse(text, &thread, &counts));
	assert_int_equal(thread.tid, 42);
	assert_string_equal(thread.name, "a) R (b");
	assert_int_equal(counts.minor_faults, 77);
	assert_int_equal(counts.major_faults, 9);
	assert_int_equal(thread.priority, 88);
	assert_int_equal(thread.policy, SCHED_FIFO);
	for (size_t len = 0; len < strlen(text) - 12; len++) {
		char cut[sizeof(text)] = "";

		memcpy(cut, text, len);
		assert_false(thread_parse(cut, &thread, &counts));
	}
}

static void only_a_futex_that_is_a_lock_is_one(void **state)
{
	char room[32];

	(void)state;
	assert_int_equal(
		blocking_call_lock(&(struct blocking_call){SYS_futex, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0}),
		LOCK_INHERITS);
	assert_int_equal(blocking_call_lock(&(struct blocking_call){SYS_futex, FUTEX_WAIT_PRIVATE, 2}),
			 LOCK_PLAIN);
	assert_int_equal(blocking_call_lock(&(struct blocking_call){SYS_futex, FUTEX_WAIT_BITSET_PRIVATE, 0}),
			 NO_LOCK);
	assert_int_equal(blocking_call_lock(&(struct blocking_call){SYS_read, FUTEX_LOCK_PI, 2}), NO_LOCK);
	assert_string_equal(blocking_call_name(SYS_clock_nanosleep, room, sizeof(room)), "clock_nanosleep");
	assert_string_equal(blocking_call_name(100000, room, sizeof(room)), "syscall 100000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_activation_is_from_the_wake_up_to_the_sleep),
		cmocka_unit_test(an_activation_goes_on_while_its_thread_is_held),
		cmocka_unit_test(what_began_before_is_undetermined),
		cmocka_unit_test(a_wake_up_before_it_sleeps_begins_nothing),
		cmocka_unit_test(what_needs_no_switch_is_told_without_it),
		cmocka_unit_test(a_system_call_bounds_the_latency),
		cmocka_unit_test(an_unseen_return_after_a_preemption_leaves_the_response),
		cmocka_unit_test(a_thread_that_slept_unseen_begins_anew),
		cmocka_unit_test(only_a_futex_that_is_a_lock_is_one),
		cmocka_unit_test(after_lost_events_it_begins_anew),
		cmocka_unit_test(a_thread_is_read_whatever_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
