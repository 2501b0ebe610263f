// SPDX-License-Identifier: MIT
/* What counts as breaking a rule for real-time threads: in which calls, after the start-up, in whole cycles.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "probes/watch/broken_rules.c" /* NOLINT(bugprone-suspicious-include): its parts are static */
#include "probes/watch/mounts.c"       /* NOLINT(bugprone-suspicious-include): its parts are static */

#define BEGIN INT64_C(5000000000)
#define LOCK 0x1000
#define CONTENDED_LOCK 2

static const struct sleep_end nobody = {.by = "interrupt"}, lower = {.by = "logger", .lower = true},
			      higher = {.by = "irq/31-eth0"};

static struct broken_rules settled(void)
{
	struct broken_rules rules = {0};

	broken_rules_cycle(&rules, BEGIN - NS_PER_S);
	broken_rules_cycle(&rules, BEGIN);
	assert_true(rules.judging);
	return rules;
}

static struct wait made(long number, uint64_t first, int64_t slept_ns)
{
	return (struct wait){.call = {.number = number, .arguments = {first}},
			     .enter_ns = BEGIN + 1000,
			     .exit_ns = BEGIN + 3000 + slept_ns,
			     .slept_ns = slept_ns,
			     .slept = slept_ns > 0};
}

static struct wait futex(int command, uint64_t address, uint64_t value)
{
	struct wait wait = made(SYS_futex, address, 5000);

	wait.call.arguments[1] = (uint64_t)command;
	wait.call.arguments[2] = value;
	return wait;
}

/* Returns how often the rule was broken, after the cycle has ended. */
static int64_t broken(struct broken_rules *rules, enum rule rule)
{
	int64_t count = 0;

	broken_rules_cycle(rules, BEGIN + NS_PER_S);
	for (int i = 0; i < rules->count; i++)
		count += rules->list[i].rule == rule ? rules->list[i].sum.count : 0;
	return count;
}

static void calls(struct broken_rules *rules, struct wait wait, const struct sleep_end *end)
{
	broken_rules_call(rules, getpid(), &wait, false, end);
}

static void calls_that_need_memory_or_a_disk_break_rules(void **state)
{
	struct broken_rules rules = settled();

	(void)state;
	calls(&rules, made(SYS_munmap, 0, 0), &nobody);
	calls(&rules, made(SYS_brk, 0, 0), &nobody);
	calls(&rules, made(SYS_openat, 0, 0), &nobody);
	calls(&rules, made(SYS_sync, 0, 0), &nobody);
	calls(&rules, made(SYS_clone, 0, 0), &nobody);
	assert_int_equal(broken(&rules, RULE_MEMORY), 2);
	assert_int_equal(broken(&rules, RULE_DISK), 2);
	assert_int_equal(broken(&rules, RULE_THREAD), 1);
	assert_int_equal(rules.list[0].sum.max_ns, 2000);
	assert_int_equal(rules.list[0].sum.max_at_ns, BEGIN + 3000);
}

static void only_files_on_a_disk_count(void **state)
{
	struct broken_rules rules = settled();
	int proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC), pipes[2];

	(void)state;
	assert_true(proc >= 0 && !pipe(pipes));
	calls(&rules, made(SYS_read, (uint64_t)proc, 0), &nobody);
	calls(&rules, made(SYS_write, (uint64_t)pipes[1], 0), &nobody);
	calls(&rules, made(SYS_write, 999, 0), &nobody); /* closed already */
	assert_int_equal(broken(&rules, RULE_DISK), 0);
	calls(&rules, made(SYS_fsync, 999, 0), &nobody);
	assert_int_equal(broken(&rules, RULE_DISK), 1);
	close(proc);
	close(pipes[0]);
	close(pipes[1]);
}

static void files_in_memory_do_not_count_and_others_do(void **state)
{
	struct broken_rules rules = settled();
	int memory = memfd_create("rules", MFD_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	FILE *mounts = open_proc(getpid(), "mountinfo");
	enum place place;

	(void)state;
	assert_true(memory >= 0 && null >= 0 && program >= 0 && mounts);
	calls(&rules, made(SYS_write, (uint64_t)memory, 0), &nobody);
	calls(&rules, made(SYS_write, (uint64_t)null, 0), &nobody);
	calls(&rules, made(SYS_fsync, (uint64_t)memory, 0), &nobody);
	assert_int_equal(broken(&rules, RULE_DISK), 0);
	place = place_of(mounts, mount_of(getpid(), program)); /* where this test was built */
	calls(&rules, made(SYS_read, (uint64_t)program, 0), &nobody);
	assert_int_equal(broken(&rules, RULE_DISK), place == LOCAL || place == REMOTE);
	fclose(mounts);
	close(memory);
	close(null);
	close(program);
}

static enum place place_in(const char *mounts, long mount)
{
	FILE *file = fmemopen((void *)mounts, strlen(mounts), "r");
	enum place place = place_of(file, mount);

	fclose(file);
	return place;
}

static void a_mount_shows_where_its_files_are(void **state)
{
	static const char mounts[] =
		"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
		"2 22 0:30 / /run rw - tmpfs tmpfs rw\n"
		"221 22 0:50 / /mnt/with\\040-\\040name rw shared:9 master:2 - nfs4 host:/tmpfs rw,hard\n"
		"31 22 0:51 / /mnt/far rw - fuse.sshfs me@host: rw\n"
		"32 22 0:52 / /sys/fs/fuse/connections rw - fusectl fusectl rw\n"
		"33 22 0:53 / /mnt/odd";

	(void)state;
	assert_int_equal(place_in(mounts, 22), LOCAL);
	assert_int_equal(place_in(mounts, 2), IN_MEMORY);
	assert_int_equal(place_in(mounts, 221), REMOTE);
	assert_int_equal(place_in(mounts, 31), REMOTE);
	assert_int_equal(place_in(mounts, 32), LOCAL);
	assert_int_equal(place_in(mounts, 33), NO_PLACE);
	assert_int_equal(place_in(mounts, 15), NO_PLACE);
}

static void a_sleep_within_the_cycle_needs_a_limit_and_a_peer(void **state)
{
	struct broken_rules rules = settled();
	struct wait timed = made(SYS_ppoll, 0x2000, 5000), interrupted = made(SYS_read, 0, 5000);

	(void)state;
	timed.own.expiry_ns = BEGIN + NS_PER_S;
	interrupted.interrupted = true;
	calls(&rules, timed, &higher);
	calls(&rules, interrupted, &lower);
	calls(&rules, made(SYS_clock_nanosleep, 0, 5000), &nobody);
	calls(&rules, made(SYS_read, 0, 0), &nobody);
	assert_int_equal(broken(&rules, RULE_NO_LIMIT), 0);
	assert_int_equal(broken(&rules, RULE_LOWER_WAKER), 0);
	calls(&rules, made(SYS_read, 0, 5000), &higher);
	calls(&rules, timed, &lower);
	assert_int_equal(broken(&rules, RULE_NO_LIMIT), 1);
	assert_int_equal(broken(&rules, RULE_LOWER_WAKER), 1);
	assert_string_equal(rules.list[1].by, "logger");
}

/* Whoever stops, continues or thaws the thread also wakes it. */
static void nobody_ends_a_wait_that_times_out(void **state)
{
	struct wait received = made(SYS_recvfrom, 0, 5000), paused = made(SYS_clock_nanosleep, 0, 5000);
	struct broken_rules rules = settled();

	(void)state;
	received.result = -EAGAIN;
	calls(&rules, received, &lower);
	broken_rules_call(&rules, getpid(), &received, true, &lower);
	calls(&rules, paused, &lower);
	assert_int_equal(broken(&rules, RULE_LOWER_WAKER), 0);
	assert_int_equal(broken(&rules, RULE_NO_LIMIT), 0);
	received.result = 1;
	calls(&rules, received, &lower);
	assert_int_equal(broken(&rules, RULE_LOWER_WAKER), 1);
}

static void the_wait_for_the_release_needs_only_a_peer(void **state)
{
	const struct wait wait = made(SYS_read, 0, 5000);
	struct broken_rules rules = settled();

	(void)state;
	broken_rules_call(&rules, getpid(), &wait, true, &higher);
	assert_int_equal(broken(&rules, RULE_NO_LIMIT), 0);
	broken_rules_call(&rules, getpid(), &wait, true, &lower);
	assert_int_equal(broken(&rules, RULE_LOWER_WAKER), 1);
}

static void a_lock_is_a_futex_that_always_has_the_same_value(void **state)
{
	struct broken_rules rules = settled();

	(void)state;
	calls(&rules, futex(FUTEX_WAIT, LOCK, CONTENDED_LOCK), &lower);
	calls(&rules, futex(FUTEX_LOCK_PI, LOCK + 8, 0), &lower);
	assert_int_equal(broken(&rules, RULE_LOCK), 1);
	assert_int_equal(broken(&rules, RULE_LOWER_WAKER), 0);
	calls(&rules, futex(FUTEX_WAIT_BITSET, LOCK, 3), &higher); /* a counter that was 2 before */
	assert_int_equal(broken(&rules, RULE_LOCK), 0);
	calls(&rules, futex(FUTEX_WAIT, LOCK, CONTENDED_LOCK), &higher);
	assert_int_equal(broken(&rules, RULE_LOCK), 0);
	assert_int_equal(broken(&rules, RULE_NO_LIMIT), 2);
}

static void start_up_and_end_do_not_count(void **state)
{
	struct broken_rules rules = {0};

	(void)state;
	broken_rules_faults(&rules, 500, 1, BEGIN);
	broken_rules_cycle(&rules, BEGIN);
	calls(&rules, made(SYS_munmap, 0, 0), &nobody);
	broken_rules_faults(&rules, 900, 1, BEGIN + 1000);
	broken_rules_cycle(&rules, BEGIN + NS_PER_S - 1);
	assert_false(rules.judging);
	broken_rules_cycle(&rules, BEGIN + NS_PER_S);
	calls(&rules, made(SYS_munmap, 0, 0), &nobody); /* in a cycle that does not end */
	for (int i = 0; i < rules.count; i++)
		assert_int_equal(rules.list[i].sum.count, 0);
	assert_int_equal(rules.cycles, 0);
}

static void page_faults_count_once_a_cycle_has_ended_after_them(void **state)
{
	struct broken_rules rules = settled();

	(void)state;
	broken_rules_faults(&rules, 7, 0, BEGIN + 5000);
	broken_rules_cycle(&rules, BEGIN + 4000);
	assert_int_equal(rules.list[0].sum.count, 0);
	broken_rules_cycle(&rules, BEGIN + 6000);
	assert_int_equal(rules.list[0].sum.count, 7);
	assert_string_equal(rules.list[0].call, "minor");
}

static void a_cycle_with_lost_events_does_not_count(void **state)
{
	struct broken_rules rules = settled();

	(void)state;
	calls(&rules, made(SYS_munmap, 0, 0), &nobody);
	broken_rules_lost(&rules);
	calls(&rules, made(SYS_munmap, 0, 0), &nobody);
	assert_int_equal(broken(&rules, RULE_MEMORY), 0);
	calls(&rules, made(SYS_munmap, 0, 0), &nobody);
	assert_int_equal(broken(&rules, RULE_MEMORY), 1);
}

static void what_has_no_room_is_counted(void **state)
{
	struct broken_rules rules = settled();

	(void)state;
	for (int i = 0; i < BROKEN_RULES_MAX + 3; i++) {
		const struct sleep_end end = {.by = (const char[]){(char)('a' + i), '\0'}, .lower = true};

		calls(&rules, made(SYS_read, 0, 5000), &end);
	}
	assert_int_equal(broken(&rules, RULE_LOWER_WAKER), BROKEN_RULES_MAX);
	assert_int_equal(rules.left_out, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_need_memory_or_a_disk_break_rules),
		cmocka_unit_test(only_files_on_a_disk_count),
		cmocka_unit_test(files_in_memory_do_not_count_and_others_do),
		cmocka_unit_test(a_mount_shows_where_its_files_are),
		cmocka_unit_test(a_sleep_within_the_cycle_needs_a_limit_and_a_peer),
		cmocka_unit_test(nobody_ends_a_wait_that_times_out),
		cmocka_unit_test(the_wait_for_the_release_needs_only_a_peer),
		cmocka_unit_test(a_lock_is_a_futex_that_always_has_the_same_value),
		cmocka_unit_test(start_up_and_end_do_not_count),
		cmocka_unit_test(page_faults_count_once_a_cycle_has_ended_after_them),
		cmocka_unit_test(a_cycle_with_lost_events_does_not_count),
		cmocka_unit_test(what_has_no_room_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
