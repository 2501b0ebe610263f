/* SPDX-License-Identifier: MIT */
/* The host's commands on standard input (go, stop, watch, unwatch, moment), and signals that mean stop. */
#ifndef RTGAUGE_COMMANDS_H
#define RTGAUGE_COMMANDS_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Set by `stop`, by the end of input and by SIGINT, SIGTERM, SIGHUP. */
extern _Atomic bool commands_stopped;

/* Set between `watch` and `unwatch`, while somebody watches the probe's display. */
extern _Atomic bool commands_watched;

/* `moment TIME_NS TID NUMBER`: the host wants the events around this time. tid 0: of any thread. */
struct moment_request {
	int64_t time_ns, number;
	pid_t tid;
};

/* Sets the oldest request, which is forgotten then. Returns false if there is none. Requests that come
 * while MOMENT_REQUESTS wait are forgotten. */
bool commands_moment(struct moment_request *request);

#define MOMENT_REQUESTS 16

/*
 * Set in a thread whose sleep SIGUSR1 interrupts. The harness sends it so that a sleeping thread sees the
 * stop flag. If another process sends it, the kernel picks the thread.
 */
extern _Thread_local volatile sig_atomic_t commands_woken;

/*
 * Returns whether a signal cut short a sleep until due_ns, which ended at now_ns, so that the thread must
 * sleep again. A sleep that ends early without a signal does not count. It is recorded as it is.
 */
static inline bool commands_cut_short(int64_t due_ns, int64_t now_ns)
{
	if (__builtin_expect(now_ns >= due_ns, 1) || !commands_woken)
		return false;
	commands_woken = 0;
	return true;
}

/*
 * Installs the signal handlers. With `listen`, standard input is read too; otherwise only signals stop the
 * process. A signal stays ignored if the process was started to ignore it, for example by nohup.
 */
void commands_begin(bool listen);

/* For every thread except the first: signals that mean stop will not interrupt its sleep. */
void commands_leave_to_main(void);

/* Waits for `go`. Returns false if `stop` came first. */
bool commands_wait_go(void);

/* Sleeps at most timeout_ns, or until a stop or a wake-up. */
void commands_wait(int64_t timeout_ns);

/* Ends the first thread's present or next commands_wait. */
void commands_wake(void);

#endif
