/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_GUARD_H
#define RTGAUGE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/machine_lock.h"
#include "base/clock.h"

#define LINE_MAX_LEN 4096 /* PIPE_BUF: a line goes into a pipe whole or not at all */

enum phase {
	PHASE_RUN,
	PHASE_CLOSED, /* the program's standard input is closed: programs that read it end now */
	PHASE_TERM,   /* SIGTERM was sent to all */
	PHASE_KILL,
};

struct guard {
	int64_t lease_ns, grace_ns;
	bool detach;
	int signals;	     /* signalfd */
	const char *journal; /* its folder; NULL: no place is known */
	struct machine_lock lock;
	struct holder self;
	int64_t wait_ns; /* for the lock, at most */
	pid_t waiter;	 /* the child that waits for it; 0: none */
	pid_t program;	 /* 0: a session */
	int program_in;	 /* -1: closed */
	int start_error; /* errno of exec */
	int note_error;	 /* errno of the journal: it was not started */

	enum phase phase;
	int64_t lease_end, phase_end;	/* CLOCK_MONOTONIC */
	bool input_over, exited, asked; /* asked: by a signal */
	char line[LINE_MAX_LEN];
	size_t used;
	bool too_long;

	/* what it says at the end */
	const char *reason; /* exit, lease, eof, signal, stop, exec; NULL: it has not ended */
	int status, signal; /* of the program */
	size_t killed;	    /* processes that SIGKILL was sent to */
	size_t remaining;   /* processes that did not end even so */
	size_t dropped;	    /* lines that the program did not take */
};

/* Starts the program in a session of its own; fills program and program_in, or start_error. */
void guard_start(struct guard *guard, char **program);

/*
 * Takes the lock, or waits for it, as long as the host renews and at most wait_ns. 0, or an errno,
 * EWOULDBLOCK if another process still holds it. tell: called with the holder when it is waited for, and for
 * each one after it.
 */
int guard_take_lock(struct guard *guard,
		    void (*tell)(const struct guard *guard, const struct holder *holder));

/* Until the program and all that came from it are gone, or (a session) until it is to end. */
void guard_loop(struct guard *guard);

#endif
