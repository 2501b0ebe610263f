/* SPDX-License-Identifier: MIT */
/* The host's commands on standard input: go, stop, watch, unwatch; and signals that mean stop. */
#ifndef RTGAUGE_COMMANDS_H
#define RTGAUGE_COMMANDS_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Set by `stop`, by the end of input and by SIGINT, SIGTERM, SIGHUP. */
extern _Atomic bool commands_stopped;

/* Set between `watch` and `unwatch`, while somebody looks at what the probe shows during the measurement. */
extern _Atomic bool commands_watched;

/*
 * Set in a thread whose sleep SIGUSR1 interrupts. The harness sends it so that a sleeping thread sees the
 * stop flag. Any other process may send it too; the kernel then picks the thread.
 */
extern _Thread_local volatile sig_atomic_t commands_woken;

/*
 * Whether somebody's signal cut short a sleep until due_ns that ended at now_ns, so that the thread has to
 * sleep again. A sleep that ends too early without a signal does not count: it is recorded as it is.
 */
static inline bool commands_cut_short(int64_t due_ns, int64_t now_ns)
{
	if (__builtin_expect(now_ns >= due_ns, 1) || !commands_woken)
		return false;
	commands_woken = 0;
	return true;
}

/*
 * Installs the signal handlers. With `listen`, standard input is read; otherwise only signals stop. A
 * signal that the process was started to ignore, as by nohup, stays ignored.
 */
void commands_begin(bool listen);

/* For every thread except the first: signals that mean stop do not interrupt its sleep. */
void commands_leave_to_main(void);

/* Waits for `go`. Returns false if it was stopped before. */
bool commands_wait_go(void);

/* Sleeps at most timeout_ns, or until it is stopped or woken. */
void commands_wait(int64_t timeout_ns);

/* Ends the present or next commands_wait of the first thread. */
void commands_wake(void);

#endif
