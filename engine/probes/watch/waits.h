/* SPDX-License-Identifier: MIT */
/*
 * Follows one thread through the kernel's events: the calls in which it waits, the timers that it arms, when
 * it has the CPU, and what ends its sleeps. docs/probes/watch.md says which of its waits begin a cycle.
 */
#ifndef RTGAUGE_WATCH_WAITS_H
#define RTGAUGE_WATCH_WAITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probes/watch/blocking_calls.h"
#include "probes/watch/sched_events.h"

#define WAIT_TIMERS 8 /* timers of a thread that are followed */
#define WAIT_FIRED 4  /* expired timers that can end one wait */
#define WAIT_PAUSES 64

/* A timer's expiry on CLOCK_MONOTONIC; the clock of the timer may be the wall clock. */
struct wait_expiry {
	uint64_t timer; /* identifies it; 0: the time-out of the call itself */
	int64_t expiry_ns;
	int64_t armed_ns; /* of a sleep for the rest of an interrupted one: so long before as that one */
	int64_t there_ns; /* the expiry on the timer's own clock */
	bool wall;
};

#define GAP_CALL (-2) /* number of the call: events were lost from enter_ns to exit_ns */

enum wait_end { ENDED_BY_ITSELF, ENDED_BY_INTERRUPT, ENDED_BY_SOFTIRQ, ENDED_BY_TASK };

/* One call that can wait. If the kernel reports no calls, a sleep stands for it (number -1). */
struct wait {
	struct blocking_call call;
	int64_t enter_ns, exit_ns; /* exit 0: it has not returned */
	struct wait_expiry own;	   /* its time-out; expiry 0: none */
	struct wait_expiry fired[WAIT_FIRED];
	unsigned int fired_count; /* timers armed before that expired until it returned */
	bool slept;
	bool interrupted; /* a signal ended it, or the kernel enters it again */
	int64_t result;
	int64_t woken_ns, slept_ns; /* last wake-up, 0: none; for how long it slept */
	enum wait_end ended;
	pid_t waker;
	int64_t ran_enter_ns, ran_exit_ns; /* CPU time of the thread up to there */
	unsigned int doubts_enter, doubts_exit;
	int cpu; /* the CPU on which it returned */
};

/* A stretch in which the thread did not have the CPU. until_ns 0: it lasts. */
struct wait_pause {
	int64_t from_ns, until_ns;
};

enum wait_state { WAIT_UNKNOWN, WAIT_RUNNING, WAIT_PREEMPTED, WAIT_ASLEEP, WAIT_HELD };

struct waits {
	pid_t tid;
	bool has_calls; /* the kernel reports system calls */

	enum wait_state state;
	int cpu;
	int64_t since_ns;	       /* of the state */
	int64_t ran_ns;		       /* CPU time in stretches that have ended */
	unsigned int doubts;	       /* switches that the kernel did not trace */
	bool lost_call;		       /* events were lost, and it has entered no call since */
	bool waiting;		       /* it is in a call that can wait */
	struct wait now;	       /* this call, or the last one */
	struct wait interrupted;       /* the call that a signal interrupted; number GAP_CALL: none */
	struct wait_expiry broken_off; /* its time-out, if the present call may be for the rest of it */
	struct wait any;	       /* the last wait for any of several objects that has returned */
	struct wait_expiry timers[WAIT_TIMERS];
	bool expired[WAIT_TIMERS]; /* its expiry has ended a wait */
	struct wait_pause pauses[WAIT_PAUSES];
	const struct clock_offsets *offsets;
	unsigned int pause_count; /* of all; the last WAIT_PAUSES are kept */
};

/* What an event meant for the thread. */
enum wait_news {
	NEWS_NOTHING,
	NEWS_ENTERED,	/* it entered a call that can wait: waits.now */
	NEWS_RETURNED,	/* it returned from it */
	NEWS_FIRED,	/* an expired timer had ended waits.any: the thread has set it anew */
	NEWS_PREEMPTED, /* another task took its CPU */
	NEWS_SLEEPS,	/* it went to sleep, in a call or not */
	NEWS_WOKEN,	/* something ended its sleep */
};

void waits_begin(struct waits *waits, pid_t tid, bool has_calls);

/* Takes an event of the thread. offsets_ns: what to subtract from a timer's expiry on each of the kernel's
 * clocks to get CLOCK_MONOTONIC (sched_clock_offsets). */
enum wait_news waits_take(struct waits *waits, const struct sched_event *event,
			  const struct clock_offsets *offsets);

/* Call if events were lost: the present call and state are unknown. */
void waits_lost(struct waits *waits);

/* Returns the CPU time of the thread up to now_ns. */
int64_t waits_ran_ns(const struct waits *waits, int64_t now_ns);

/* Returns an expiry on CLOCK_MONOTONIC, as the clocks are now. */
int64_t waits_expiry_ns(const struct waits *waits, const struct wait_expiry *expiry, int64_t now_ns);

/* Returns until when the thread certainly did not run from this time on: the time itself if it may have run
 * then. */
int64_t waits_off_until(const struct waits *waits, int64_t time_ns, int64_t now_ns);

#endif
