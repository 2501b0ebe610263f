/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_GUARD_H
#define RTGAUGE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/machine_lock.h"
#include "base/clock.h"

#define LINE_MAX_LEN 4096 /* PIPE_BUF: a shorter line goes into a pipe whole or not at all */

enum phase {
	PHASE_RUN,
	PHASE_CLOSED, /* the program's standard input is closed: a program that reads it ends now */
	PHASE_TERM,   /* SIGTERM was sent to all processes */
	PHASE_KILL,
};

struct guard {
	int64_t lease_ns, grace_ns;
	bool detach;
	int signals;	     /* signalfd */
	const char *journal; /* the journal's folder; NULL: none is known */
	struct machine_lock lock;
	struct holder self;
	int64_t wait_ns; /* longest wait for the lock */
	pid_t waiter;	 /* the child that waits for the lock; 0: none */
	pid_t program;	 /* 0: a session */
	int program_in;	 /* -1: closed */
	int start_error; /* errno of exec */
	int note_error;	 /* errno of the journal: the program was not started */

	enum phase phase;
	int64_t lease_end, phase_end;	/* CLOCK_MONOTONIC */
	bool input_over, exited, asked; /* asked by a signal to end */
	char line[LINE_MAX_LEN];
	size_t used;
	bool too_long;

	/* its last report */
	const char *reason; /* exit, lease, eof, signal, stop or exec; NULL: it has not ended */
	int status, signal; /* how the program ended */
	size_t killed;	    /* processes that SIGKILL was sent to */
	size_t remaining;   /* processes that survived SIGKILL */
	size_t dropped;	    /* lines that the program has not read */
};

/* Starts the program in its own session. Sets program and program_in, or start_error. */
void guard_start(struct guard *guard, char **program);

/*
 * Takes the lock. Waits for it at most wait_ns, as long as the host renews. Returns 0 or an errno;
 * EWOULDBLOCK if another process still holds it. Calls tell with the holder when it begins to wait, and
 * for each later holder.
 */
int guard_take_lock(struct guard *guard,
		    void (*tell)(const struct guard *guard, const struct holder *holder));

/* Runs until the program and all its descendants are gone, or until a session has to end. */
void guard_loop(struct guard *guard);

#endif
