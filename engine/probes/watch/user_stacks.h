/* SPDX-License-Identifier: MIT */
/*
 * Where in the program a thread was when it broke a rule. After a rule was broken for the first time, the
 * kernel keeps the stack of the thread (perf) at its next page faults, or at the begin of this call, until
 * there are enough. A thread that breaks no rule runs as without this.
 */
#ifndef RTGAUGE_WATCH_USER_STACKS_H
#define RTGAUGE_WATCH_USER_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"

/* The stacks of one thread. */
struct user_stacks;

/* from_start: stacks are kept from the first time on, which costs more at each call and switch. NULL: there
 * is no memory. */
struct user_stacks *user_stacks_open(pid_t tid, bool from_start);

/* Takes what the kernel has kept. */
void user_stacks_read(struct user_stacks *stacks);

/* A call broke a rule, whose number in the thread's list is rule. call: its number. */
void user_stacks_call(struct user_stacks *stacks, int rule, int64_t call, int64_t enter_ns, int64_t exit_ns);

/* The page faults up to now broke a rule; rule < 0: they broke none. */
void user_stacks_faults(struct user_stacks *stacks, int rule, bool major);

/* Writes a `rule-stack` result for each kept stack of a rule. */
void user_stacks_write(const struct user_stacks *stacks, int rule, const char *task, const char *rule_name,
		       const char *call, struct json *j);

#endif
