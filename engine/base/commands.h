/* SPDX-License-Identifier: MIT */
/* The words that the host says on standard input: go, stop, watch, unwatch; and signals, which mean stop. */
#ifndef RTGAUGE_COMMANDS_H
#define RTGAUGE_COMMANDS_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Set by `stop`, by the end of input and by SIGINT, SIGTERM, SIGHUP. */
extern _Atomic bool commands_stopped;

/* Between `watch` and `unwatch`: somebody looks at what the probe has to show while it measures. */
extern _Atomic bool commands_watched;

/*
 * Set in the thread whose sleep SIGUSR1 interrupts: the harness sends it so that a sleeping thread sees the
 * stop flag, anybody may send it for no reason, and the kernel then picks the thread.
 */
extern _Thread_local volatile sig_atomic_t commands_woken;

/*
 * Whether a sleep until due_ns that ended at now_ns was cut short by somebody's signal: the thread has to
 * sleep on. A sleep that ends too early by itself is no such case, and is told as it is.
 */
static inline bool commands_cut_short(int64_t due_ns, int64_t now_ns)
{
	if (__builtin_expect(now_ns >= due_ns, 1) || !commands_woken)
		return false;
	commands_woken = 0;
	return true;
}

/*
 * Installs the signal handlers. listen: standard input is read; else only signals stop. A signal that the
 * process was started to ignore, as by nohup, stays ignored.
 */
void commands_begin(bool listen);

/* For every thread but the first: the signals that mean stop do not interrupt its sleep. */
void commands_leave_to_main(void);

/* Waits for `go`. false: stopped before. */
bool commands_wait_go(void);

/* Sleeps at most timeout_ns, or until told to stop or woken. */
void commands_wait(int64_t timeout_ns);

/* Ends the first thread's commands_wait, or its next one. */
void commands_wake(void);

#endif
