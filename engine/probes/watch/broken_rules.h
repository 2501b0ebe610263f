/* SPDX-License-Identifier: MIT */
/*
 * What a real-time thread did in its cycles that a real-time thread should not do: page faults, calls that
 * need memory or a disk, sleeps on locks without priority inheritance, sleeps that a thread of lower priority
 * ended, and sleeps without a limit of time. What a thread does before its loop has settled, and in a cycle
 * that it does not finish, is its start-up or its end, and does not count.
 */
#ifndef RTGAUGE_WATCH_BROKEN_RULES_H
#define RTGAUGE_WATCH_BROKEN_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "probes/watch/waits.h"

#define BROKEN_RULES_MAX 24
#define KNOWN_FILES 16
#define KNOWN_FUTEXES 8

enum rule {
	RULE_PAGE_FAULT,
	RULE_MEMORY,
	RULE_DISK,
	RULE_THREAD,
	RULE_LOCK,
	RULE_LOWER_WAKER,
	RULE_NO_LIMIT
};

/* How often and for how long; max_at_ns: when the longest one ended. */
struct broken_sum {
	int64_t count, total_ns, max_ns, max_at_ns;
};

/* A rule that a thread broke in a call, and who woke it. */
struct broken_rule {
	enum rule rule;
	char call[CALL_NAME_MAX], by[32];
	uint64_t lock;		     /* its address; 0: the rule is about something else */
	struct broken_sum sum, last; /* in all cycles that are over, and since the last one */
};

struct user_stacks;

struct broken_rules {
	struct broken_rule list[BROKEN_RULES_MAX];
	int count;
	bool judging, pending;
	int64_t settled_ns;	  /* when its loop has settled; 0: it has not begun */
	int64_t cycles, left_out; /* cycles that were judged; breaches for which there was no room */
	int64_t minor_faults, major_faults;
	struct {
		int fd;
		int64_t seen_ns; /* 0: nothing is known */
		bool disk, unknown;
	} files[KNOWN_FILES];
	uint64_t other_futexes[KNOWN_FUTEXES]; /* that are no locks */
	unsigned int other_count;
	struct user_stacks *stacks; /* where in the program it was; NULL: unknown */
};

/* Who ended a sleep: its name, and whether its priority is lower than the thread's. */
struct sleep_end {
	const char *by;
	bool lower;
};

/* The thread enters the call in which it waits for its next release: its cycle is over. */
void broken_rules_cycle(struct broken_rules *rules, int64_t now_ns);

/* A call has returned. release: it was the one in which the thread waits for its release. */
void broken_rules_call(struct broken_rules *rules, pid_t tid, const struct wait *wait, bool release,
		       const struct sleep_end *end);

/* The kernel counted so many page faults of the thread up to now_ns. */
void broken_rules_faults(struct broken_rules *rules, int64_t minor, int64_t major, int64_t now_ns);

/* Events were lost: the present cycle does not count. */
void broken_rules_lost(struct broken_rules *rules);

/* Writes a `broken-rule` result for each rule and call. from_ns: the beginning of the measured phase. */
void broken_rules_write(const struct broken_rules *rules, const char *task, int64_t from_ns, struct json *j);

#endif
