/* SPDX-License-Identifier: MIT */
/*
 * The runtime of the measured threads: Linux, or a co-kernel beneath it, chosen when the program is built.
 *
 * Probes use POSIX's names: threads, semaphores, mutexes, condition variables, message queues, timerfd,
 * clock_gettime, clock_nanosleep, sched_yield. A co-kernel's program is linked so that these names are the
 * co-kernel's (ld --wrap). Everything else is here and in rt/policy.h and base/usage.h; rt/linux/,
 * rt/cobalt/ and rt/rtai/ implement it. The ordinary engine has nothing of it in its measured paths.
 */
#ifndef RTGAUGE_RUNTIME_H
#define RTGAUGE_RUNTIME_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/verbs.h"

#ifdef RTGAUGE_COKERNEL /* name, as in --rt NAME */

enum { RUNTIME_IS_COKERNEL = 1 };
#define RUNTIME_NAME RTGAUGE_COKERNEL
#define RUNTIME_MODULE(name) name "_" RTGAUGE_COKERNEL

#ifdef RTGAUGE_RTAI
enum {
	RUNTIME_FIRES_EARLY = 1, /* its timers are set earlier by the usual time of a wake-up */
	RUNTIME_COUNTS_SWITCHES =
		0, /* counts switches of a thread, and moves to Linux of all threads together */
	RUNTIME_HANDLES_TIMERS = 0, /* in kernel space, without a thread */
};
#else
enum { RUNTIME_FIRES_EARLY = 0, RUNTIME_COUNTS_SWITCHES = 1, RUNTIME_HANDLES_TIMERS = 1 };
#endif

/* Linux's call, whose name is the co-kernel's. The co-kernel's call refuses it before this process has
   joined. */
#ifdef RTGAUGE_COBALT
#define RUNTIME_LINUX(call) __STD(call)
#else
#define RUNTIME_LINUX(call) call
#endif

/* Called in main before the verb. Returns 0, or the exit status after an `error` line: the co-kernel is
 * missing or lacks the probe. */
int runtime_begin(const struct verb *verb);

/*
 * Called afterwards, and after a second process was forked. This process joins the co-kernel, can then
 * make its calls, and must not fork any more. Repeated calls do nothing. Returns 0, or the exit status
 * after an `error` line.
 */
int runtime_join(void);

/* Called after the options are read. Checks them against what the co-kernel lacks. Returns 0, or the exit
 * status after an `error` line. */
int runtime_check(const char *verb, const struct option_entry *table);

/* Called on a measuring thread before it measures. Returns 0 or an errno. */
int runtime_thread_begin(void);

/* Called on a measuring thread after it has measured. */
void runtime_thread_end(void);

/* Called on an ordinary thread before it moves to another CPU. */
void runtime_thread_moves(void);

/* Called on the thread that drains, before the gate opens; the second returns how often threads were moved
 * to Linux since then, if this is not counted for each thread (-1: unknown). */
void runtime_go(void);
int64_t runtime_switches_of_all(void);

/* Ends the sleep of a measuring thread that must stop. Ordinary threads call it. */
void runtime_interrupt(pthread_t thread);

/* Reads a clock that the co-kernel may lack, in ns. Ordinary threads call it. */
int64_t runtime_linux_clock_ns(clockid_t clock);

/* Returns why a measuring thread was moved to Linux; NULL: unknown. */
const char *runtime_switch_cause(void);

#else

enum {
	RUNTIME_IS_COKERNEL = 0,
	RUNTIME_FIRES_EARLY = 0,
	RUNTIME_COUNTS_SWITCHES = 1,
	RUNTIME_HANDLES_TIMERS = 1
};
#define RUNTIME_NAME "linux"
#define RUNTIME_LINUX(call) call
#define RUNTIME_MODULE(name) name /* name of the kernel module with the same task on this runtime */

static inline int runtime_begin(const struct verb *verb)
{
	(void)verb;
	return 0;
}

static inline int runtime_join(void)
{
	return 0;
}

static inline int runtime_check(const char *verb, const struct option_entry *table)
{
	(void)verb;
	(void)table;
	return 0;
}

static inline int runtime_thread_begin(void)
{
	return 0;
}

static inline void runtime_thread_end(void)
{
}

static inline void runtime_thread_moves(void)
{
}

static inline void runtime_go(void)
{
}

static inline int64_t runtime_switches_of_all(void)
{
	return -1;
}

static inline void runtime_interrupt(pthread_t thread)
{
	pthread_kill(thread, SIGUSR1);
}

static inline int64_t runtime_linux_clock_ns(clockid_t clock)
{
	return clock_now_ns(clock);
}

static inline const char *runtime_switch_cause(void)
{
	return NULL;
}

#endif

#endif
