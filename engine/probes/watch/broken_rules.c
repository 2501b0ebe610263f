// SPDX-License-Identifier: MIT
#include "probes/watch/broken_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stream.h"
#include "probes/watch/mounts.h"
#include "probes/watch/user_stacks.h"

#define SETTLES_NS NS_PER_S    /* first touches of memory come in the first cycles */
#define FILE_KNOWN_NS NS_PER_S /* another thread may have closed the file and opened another one */

static const char *const rules_names[] = {"page-fault", "memory",      "disk",	  "thread",
					  "lock",	"lower-waker", "no-limit"};

static void add_up(struct broken_sum *sum, const struct broken_sum *more)
{
	if (!sum->count || more->max_ns >= sum->max_ns) {
		sum->max_ns = more->max_ns;
		sum->max_at_ns = more->max_at_ns;
	}
	sum->count += more->count;
	sum->total_ns += more->total_ns;
}

void broken_rules_cycle(struct broken_rules *rules, int64_t now_ns)
{
	bool left = false;

	if (!rules->settled_ns)
		rules->settled_ns = now_ns + SETTLES_NS;
	for (int i = 0; rules->pending && i < rules->count; i++) {
		struct broken_rule *each = &rules->list[i];

		if (!each->last.count)
			continue;
		if (each->last.max_at_ns > now_ns) { /* page faults, which may be of the next cycle */
			left = true;
			continue;
		}
		add_up(&each->sum, &each->last);
		each->last = (struct broken_sum){0};
	}
	rules->pending = left;
	rules->cycles += rules->judging;
	rules->judging = now_ns >= rules->settled_ns;
}

void broken_rules_lost(struct broken_rules *rules)
{
	for (int i = 0; i < rules->count; i++)
		rules->list[i].last = (struct broken_sum){0};
	memset(rules->files, 0, sizeof(rules->files));
	rules->pending = rules->judging = false;
}

static struct broken_rule *find(struct broken_rules *rules, enum rule rule, const char *call, const char *by,
				uint64_t lock)
{
	struct broken_rule *found;

	for (int i = 0; i < rules->count; i++) {
		found = &rules->list[i];
		if (found->rule == rule && found->lock == lock && !strcmp(found->call, call) &&
		    !strcmp(found->by, by))
			return found;
	}
	if (rules->count == BROKEN_RULES_MAX)
		return NULL;
	found = &rules->list[rules->count++];
	*found = (struct broken_rule){.rule = rule, .lock = lock};
	snprintf(found->call, sizeof(found->call), "%s", call);
	snprintf(found->by, sizeof(found->by), "%s", by);
	return found;
}

/* Returns the rule's number in the list; -1: there is no room. */
static int add(struct broken_rules *rules, enum rule rule, const char *call, const char *by, uint64_t lock,
	       const struct broken_sum *sum)
{
	struct broken_rule *found = find(rules, rule, call, by, lock);

	if (!found) {
		rules->left_out += sum->count;
		return -1;
	}
	add_up(&found->last, sum);
	rules->pending = true;
	return (int)(found - rules->list);
}

static void add_faults(struct broken_rules *rules, bool major, const struct broken_sum *sum)
{
	int rule = -1;

	if (sum->count <= 0)
		return;
	if (rules->judging)
		rule = add(rules, RULE_PAGE_FAULT, major ? "major" : "minor", "", 0, sum);
	if (rules->stacks)
		user_stacks_faults(rules->stacks, rule, major);
}

void broken_rules_faults(struct broken_rules *rules, int64_t minor, int64_t major, int64_t now_ns)
{
	const struct broken_sum minors = {.count = minor - rules->minor_faults, .max_at_ns = now_ns};
	const struct broken_sum majors = {.count = major - rules->major_faults, .max_at_ns = now_ns};

	rules->minor_faults = minor;
	rules->major_faults = major;
	add_faults(rules, false, &minors);
	add_faults(rules, true, &majors);
}

/* Returns whether an open file is a file on a disk, or a disk. *unknown: it is closed already. Asks no
 * server, which may never answer. */
static bool look_at(pid_t tid, int fd, bool *unknown)
{
	char path[64], first;
	enum place place = NO_PLACE;
	struct statx status;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)tid, fd);
	*unknown = readlink(path, &first, 1) != 1;
	if (*unknown || first != '/') /* a pipe, a socket and the like have no path */
		return false;
	*unknown = !mounts_place(tid, tid, fd, &place);
	if (place == NO_PLACE || place == REMOTE)
		return place == REMOTE;
	*unknown = statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &status) != 0;
	return !*unknown && (S_ISBLK(status.stx_mode) || (S_ISREG(status.stx_mode) && place == LOCAL));
}

static bool is_on_disk(struct broken_rules *rules, pid_t tid, int fd, int64_t now_ns, bool *unknown)
{
	unsigned int slot = (unsigned int)fd % KNOWN_FILES;

	*unknown = rules->files[slot].unknown;
	if (rules->files[slot].fd == fd && rules->files[slot].seen_ns &&
	    now_ns - rules->files[slot].seen_ns < FILE_KNOWN_NS)
		return rules->files[slot].disk;
	rules->files[slot].disk = look_at(tid, fd, unknown);
	rules->files[slot].unknown = *unknown;
	rules->files[slot].fd = fd;
	rules->files[slot].seen_ns = now_ns;
	return rules->files[slot].disk;
}

static void forget_file(struct broken_rules *rules, int64_t fd)
{
	if (fd >= 0 && rules->files[fd % KNOWN_FILES].fd == fd)
		rules->files[fd % KNOWN_FILES].seen_ns = 0;
}

/* Returns whether the call uses a disk. A call that exists for files does, unless its file is known to be
 * none. */
static bool uses_disk(struct broken_rules *rules, pid_t tid, const struct wait *wait)
{
	enum call_end end = blocking_call_end(&wait->call);
	int fd = blocking_call_fd(&wait->call);
	bool unknown, disk;

	if (end == BY_CLOSE)
		forget_file(rules, (int64_t)wait->call.arguments[0]);
	if (end == BY_OPEN)
		forget_file(rules, wait->result);
	if (fd < 0 || (end != BY_DISK && end != BY_FILE))
		return end == BY_OPEN || end == BY_DISK;
	disk = is_on_disk(rules, tid, fd, wait->exit_ns, &unknown);
	return disk || (unknown && end == BY_DISK);
}

/* A lock's futex always has the same value when a thread waits. One that also has other values is a counter,
 * as of a condition variable. */
static bool is_plain_lock(struct broken_rules *rules, const struct wait *wait)
{
	uint64_t address = blocking_call_object(&wait->call);
	unsigned int kept = rules->other_count < KNOWN_FUTEXES ? rules->other_count : KNOWN_FUTEXES;
	bool looks = blocking_call_lock(&wait->call) == LOCK_PLAIN;

	for (unsigned int i = 0; i < kept; i++) {
		if (rules->other_futexes[i] == address)
			return false;
	}
	if (looks || !blocking_call_is_futex(&wait->call))
		return looks;
	rules->other_futexes[rules->other_count++ % KNOWN_FUTEXES] = address;
	for (int i = 0; i < rules->count; i++) {
		if (rules->list[i].rule == RULE_LOCK && rules->list[i].lock == address)
			rules->list[i].sum = rules->list[i].last = (struct broken_sum){0};
	}
	return false;
}

/* Returns whether nobody ended the wait. A task may still have woken the thread, by stopping, continuing or
 * thawing it. */
static bool ended_by_time(const struct wait *wait)
{
	int64_t result = wait->result;

	return result == -EAGAIN || result == -ETIMEDOUT || result == -ETIME ||
	       blocking_call_is_pause(&wait->call);
}

/* Returns the number of the rule that the sleep breaks; -1: none. */
static int judge_sleep(struct broken_rules *rules, const struct wait *wait, const char *call, bool release,
		       bool plain_lock, const struct sleep_end *end)
{
	const struct broken_sum slept = {1, wait->slept_ns, wait->slept_ns, wait->exit_ns};
	uint64_t lock = blocking_call_object(&wait->call);

	if (!wait->slept_ns || wait->interrupted || blocking_call_lock(&wait->call) == LOCK_INHERITS)
		return -1;
	if (plain_lock && !release)
		return add(rules, RULE_LOCK, call, end->by, lock, &slept);
	if (ended_by_time(wait))
		return -1;
	if (end->lower)
		return add(rules, RULE_LOWER_WAKER, call, end->by, 0, &slept);
	if (!release && !wait->own.expiry_ns && !wait->fired_count)
		return add(rules, RULE_NO_LIMIT, call, end->by, 0, &slept);
	return -1;
}

void broken_rules_call(struct broken_rules *rules, pid_t tid, const struct wait *wait, bool release,
		       const struct sleep_end *end)
{
	int64_t took_ns = wait->exit_ns - wait->enter_ns;
	const struct broken_sum once = {1, took_ns, took_ns, wait->exit_ns};
	bool plain_lock = is_plain_lock(rules, wait);
	enum call_end ended_by = blocking_call_end(&wait->call);
	char room[CALL_NAME_MAX];
	const char *call = blocking_call_name(&wait->call, room, sizeof(room));
	int rule;

	if (!rules->judging || wait->call.number < 0)
		return;
	if (ended_by == BY_MEMORY)
		rule = add(rules, RULE_MEMORY, call, "", 0, &once);
	else if (ended_by == BY_THREAD)
		rule = add(rules, RULE_THREAD, call, "", 0, &once);
	else if (uses_disk(rules, tid, wait))
		rule = add(rules, RULE_DISK, call, "", 0, &once);
	else
		rule = judge_sleep(rules, wait, call, release, plain_lock, end);
	if (rules->stacks)
		user_stacks_call(rules->stacks, rule, wait->call.number, wait->enter_ns, wait->exit_ns);
}

/* Returns whether the rule was broken before, in another lock. */
static bool is_counted(const struct broken_rules *rules, int number)
{
	const struct broken_rule *each = &rules->list[number];

	for (int i = 0; i < number; i++) {
		const struct broken_rule *before = &rules->list[i];

		if (before->rule == each->rule && !strcmp(before->call, each->call) &&
		    !strcmp(before->by, each->by))
			return true;
	}
	return false;
}

void broken_rules_write(const struct broken_rules *rules, const char *task, int64_t from_ns, struct json *j)
{
	for (int i = 0; i < rules->count; i++) {
		const struct broken_rule *each = &rules->list[i];
		struct broken_sum sum = {0};

		for (int k = i; k < rules->count && !is_counted(rules, i); k++) {
			const struct broken_rule *same = &rules->list[k];

			if (same->rule == each->rule && !strcmp(same->call, each->call) &&
			    !strcmp(same->by, each->by) && same->sum.count)
				add_up(&sum, &same->sum);
		}
		if (!sum.count)
			continue;
		stream_result(j, "broken-rule");
		json_str(j, "task", task);
		json_str(j, "rule", rules_names[each->rule]);
		json_str(j, "call", each->call);
		json_str(j, "by", each->by);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "count", sum.count);
		if (each->rule != RULE_PAGE_FAULT) {
			json_int(j, "total_ns", sum.total_ns);
			json_int(j, "max_ns", sum.max_ns);
		}
		json_int(j, "max_after_ns", sum.max_at_ns - from_ns);
		stream_result_end(j);
	}
	for (int i = 0; rules->stacks && i < rules->count; i++) {
		const struct broken_rule *each = &rules->list[i];

		if (each->sum.count)
			user_stacks_write(rules->stacks, i, task, rules_names[each->rule], each->call, j);
	}
}
