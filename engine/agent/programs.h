/* SPDX-License-Identifier: MIT */
/*
 * The programs that a run has under guard. Each is in the journal beside the run's settings, as
 * `program:PID:START`, from before it runs until it has ended: nothing of a run is put back while a program
 * may still use it.
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
	int64_t start,
		guard_start; /* clock ticks since boot: a number alone may be another process's by now */
	char run[129];
	int error; /* of `programs_end`: why it could not be ended (agent/agent_error.h); 0: it was */
};

/*
 * Notes a program of which this process is the guard, before it runs. Returns 0, also if there is no journal
 * that could be written and this run has nothing to be put back; else an errno: the program must not run.
 */
int program_note(const char *dir, const char *run, pid_t pid);

/* Forgets the programs of this guard that have ended. */
void programs_forget(const char *dir);

/* false: the entry is a setting. */
bool program_parse(const struct entry *entry, struct program *program);

/* It lives, or the guard does that ends it. */
bool program_lives(const struct program *program);

/*
 * Ends programs and all that came from them: by their guard if that lives, else by SIGTERM, then by SIGKILL.
 * Each step is waited for only so long: all in all 11 s. Fills `error`.
 */
void programs_end(struct program *programs, size_t count);

#endif
