/* SPDX-License-Identifier: MIT */
/*
 * How long CPU quotas throttled the control groups of explained threads. The times come from the kernel's
 * counters in cpu.stat (Documentation/scheduler/sched-bwc.rst), because no tracepoint reports them. Works
 * with both versions of control groups. The kernel adds a throttling's time when it ends, separately for
 * each CPU.
 */
#ifndef RTGAUGE_QUOTA_H
#define RTGAUGE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"

struct quota_counts {
	int64_t periods;   /* of a quota, until now */
	int64_t times, ns; /* number of periods in which it was throttled; for how long */
};

/* Parses the text of a cpu.stat; returns false if it lacks the counters. */
bool quota_parse(const char *text, struct quota_counts *counts);

/* Follows the groups of a thread from now on. */
void quota_follow(pid_t tid);

/* Reads the counters of all groups that are followed. */
void quota_look(int64_t now_ns);

/* Returns whether a group that is followed has a quota. */
bool quota_is_used(void);

/*
 * Writes an array of the thread's groups whose throttling ended since the last look before from_ns, with
 * an entry for each look that found one.
 */
void quota_write(const char *key, pid_t tid, int64_t from_ns, struct json *j);

void quota_close(void);

#endif
