/* SPDX-License-Identifier: MIT */
/*
 * The programs that a run has under guard. The journal lists each as `program:PID:START`, next to the
 * run's settings, from before it runs until it has ended. A run's settings are not restored while a
 * program may still use them.
 */
#ifndef RTGAUGE_PROGRAMS_H
#define RTGAUGE_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/journal.h"

struct program {
	pid_t pid, guard;
	int64_t start, guard_start; /* clock ticks since boot; a pid alone may be reused */
	char run[129];
	int error; /* set by `programs_end`: why the program could not be ended (agent/agent_error.h); 0: it
		      was */
};

/*
 * Notes a program that this process guards, before the program runs. Returns 0, even if no journal can be
 * written and this run has nothing to restore; otherwise an errno, and the program must not run.
 */
int program_note(const char *dir, const char *run, pid_t pid);

/* Forgets this guard's programs that have ended. */
void programs_forget(const char *dir);

/* Returns false if the entry is a setting. */
bool program_parse(const struct entry *entry, struct program *program);

/* Returns whether the program lives, or the guard that ends it. */
bool program_lives(const struct program *program);

/*
 * Ends programs and their descendants, by their guard if it lives, else with SIGTERM and then SIGKILL. The
 * waiting takes at most 11 s in total. Sets `error`.
 */
void programs_end(struct program *programs, size_t count);

#endif
