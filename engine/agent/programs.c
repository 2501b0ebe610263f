// SPDX-License-Identifier: MIT
#include "agent/programs.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_error.h"
#include "agent/process_tree.h"
#include "agent/text.h"
#include "base/boot_id.h"
#include "base/clock.h"

#define PREFIX "program:"
#define LOOK_NS (NS_PER_S / 50)

/* A guard ends its program in order at the first SIGTERM, and at once at the second. */
enum step { STEP_TERM, STEP_KILL, STEP_KILL_GUARD, STEPS };

static const int64_t patience_ns[STEPS] = {
	3 * NS_PER_S, /* by default a guard kills its program after 2 s */
	6 * NS_PER_S, /* and gives up 5 s later */
	2 * NS_PER_S,
};

static bool has_settings(const struct journal *journal, const char *run)
{
	struct program program;

	for (size_t i = 0; i < journal->count; i++) {
		const struct entry *entry = &journal->entries[i];

		if (entry->state != STATE_OVER && !strcmp(entry->run, run) && !program_parse(entry, &program))
			return true;
	}
	return false;
}

int program_note(const char *dir, const char *run, pid_t pid)
{
	struct process process, self;
	char path[64], boot[BOOT_ID_SIZE];
	struct journal journal;
	struct entry entry;
	int error;

	if (!dir || !process_read(pid, &process) || !process_read(getpid(), &self))
		return 0;
	error = journal_open(&journal, dir, true);
	/* If nobody can write the journal, it holds no setting of this run either. */
	if (error)
		return error == ETIMEDOUT ? error : 0;
	boot_id_read(boot);
	snprintf(path, sizeof(path), PREFIX "%d:%" PRId64, (int)pid, process.start);
	entry = (struct entry){.run = run,
			       .pid = self.pid,
			       .start = self.start,
			       .boot = boot,
			       .is_volatile = true,
			       .path = path,
			       .old = "absent",
			       .wanted = "present"};
	journal.fleeting = true;
	error = journal_append(&journal, &entry, 1);
	if (error && !has_settings(&journal, run))
		error = 0;
	journal_close(&journal);
	return error;
}

void programs_forget(const char *dir)
{
	struct process self;
	struct journal journal;

	if (!dir || !process_read(getpid(), &self) || journal_open(&journal, dir, false))
		return;
	journal.fleeting = true;
	for (size_t i = 0; i < journal.count; i++) {
		struct entry *entry = &journal.entries[i];
		struct program program;

		if (entry->state != STATE_OVER && entry->pid == self.pid && entry->start == self.start &&
		    program_parse(entry, &program) && !process_lives(program.pid, program.start))
			(void)journal_mark(&journal, entry,
					   STATE_OVER); /* an entry that stays is found dead later */
	}
	journal_close(&journal);
}

bool program_parse(const struct entry *entry, struct program *program)
{
	char text[64];
	struct scan scan = {.at = text};
	size_t len = strlen(entry->path);

	if (strncmp(entry->path, PREFIX, strlen(PREFIX)) || len >= sizeof(text))
		return false;
	memcpy(text, entry->path, len + 1);
	*program = (struct program){.guard = (pid_t)entry->pid, .guard_start = entry->start};
	scan_literal(&scan, PREFIX);
	program->pid = (pid_t)scan_int(&scan, 2, INT32_MAX); /* pid 1 is the system's own */
	scan_literal(&scan, ":");
	program->start = scan_int(&scan, 0, INT64_MAX);
	snprintf(program->run, sizeof(program->run), "%s", entry->run);
	return !scan.wrong && !*scan.at;
}

static bool guard_lives(const struct program *program)
{
	return program->guard != getpid() && process_lives(program->guard, program->guard_start);
}

bool program_lives(const struct program *program)
{
	return guard_lives(program) || process_lives(program->pid, program->start);
}

static int signal_tree(const struct program *program, int number)
{
	pid_t *pids;
	size_t count;

	if (!process_lives(program->pid, program->start))
		return 0;
	count = process_tree_list(program->pid, &pids);
	for (size_t i = 0; i < count; i++)
		kill(pids[i], number);
	free(pids);
	return process_signal(program->pid, program->start, number);
}

static void begin_step(struct program *program, enum step step)
{
	int error = 0;

	if (guard_lives(program))
		error = process_signal(program->guard, program->guard_start,
				       step == STEP_KILL_GUARD ? SIGKILL : SIGTERM);
	if (!guard_lives(program) || step == STEP_KILL_GUARD)
		error = signal_tree(program, step == STEP_TERM ? SIGTERM : SIGKILL);
	program->error = error == ESRCH ? 0 : error;
}

static bool any_lives(const struct program *programs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!programs[i].error && program_lives(&programs[i]))
			return true;
	}
	return false;
}

void programs_end(struct program *programs, size_t count)
{
	for (enum step step = STEP_TERM; step < STEPS && any_lives(programs, count); step++) {
		int64_t end_ns;

		for (size_t i = 0; i < count; i++)
			begin_step(&programs[i], step);
		end_ns = clock_now_ns(CLOCK_MONOTONIC) + patience_ns[step];
		while (any_lives(programs, count) && clock_now_ns(CLOCK_MONOTONIC) < end_ns)
			clock_pause_ns(LOOK_NS);
	}
	for (size_t i = 0; i < count; i++) {
		if (!program_lives(&programs[i]))
			programs[i].error = 0;
		else if (!programs[i].error)
			programs[i].error = AGENT_ALIVE;
	}
}
