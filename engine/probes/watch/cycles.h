/* SPDX-License-Identifier: MIT */
/*
 * Derives a thread's activations from its waits: releases, starts, ends, and points of its grid for which it
 * did not wait. docs/probes/watch.md defines the terms.
 */
#ifndef RTGAUGE_WATCH_CYCLES_H
#define RTGAUGE_WATCH_CYCLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/watch/cycle_choice.h"
#include "probes/watch/waits.h"

#define SITES 8
#define CYCLES_DEFINITIONS                                                                                   \
	2 /* version of these definitions; 1: an activation is from a wake-up to a sleep                     \
	   */

enum cycle_news {
	CYCLE_BEGUN,	/* start and latency are known */
	CYCLE_DONE,	/* the response too */
	CYCLE_OVERRUN,	/* a release for which the thread did not wait */
	CYCLE_LOST_END, /* an activation whose end was lost */
	CYCLE_CUT,	/* the end of the step cut it: at_least_ns is its age; start_ns 0: it has not begun */
	CYCLE_UNKNOWN_RELEASE, /* a release while events were lost, or that nothing shows */
};

struct activation {
	int64_t release_ns, start_ns, end_ns;
	int64_t timer_ns;     /* if it set its timer for later than the release: the expiry; else 0 */
	int64_t period_ns;    /* from start to start; 0: there was none before */
	int64_t execution_ns; /* -1: the kernel did not trace each switch */
	/* Overrun: how late it certainly is. Cut: its age. */
	int64_t at_least_ns;
	/* Overrun, or done without a certain response: the response is at least this long. */
	int64_t least_response_ns;
	bool certain; /* done: false if the thread may have run later releases before it waited again */
	int cpu;
};

typedef void (*cycle_take)(void *user, enum cycle_news news, const struct activation *activation);

struct cycles {
	struct cycle_wish wish;
	cycle_take take;
	void *user;

	bool chosen;
	struct cycle_choice choice;
	struct cycle_candidate model; /* the wait that begins the cycle */
	struct wait *learned;	      /* waits from which to choose, or, later, that are not of the model */
	size_t learned_count, learned_room;
	size_t learn_at; /* so many waits are enough to choose from */
	bool no_memory;
	struct {
		int64_t number;
		uint64_t object;
	} sites[SITES]; /* where the thread waited before choosing */
	size_t site_count;
	unsigned int changes; /* how often another wait began to begin the cycle */
	unsigned int moved;   /* expiries off the grid in a row, one period apart */

	bool active;	 /* an activation has begun and not ended */
	bool ended;	 /* ... but the thread has entered the wait in which it may end: now.end_ns */
	bool anew;	 /* the grid began anew at the last release */
	bool paused;	 /* its pause for a fixed time has come */
	bool broken_off; /* a signal interrupted its wait the last time */
	bool looked;	 /* it returned without a wait (looks), in this activation or before */
	struct activation now;
	int64_t ran_start_ns;
	unsigned int doubts_start;
	double point_ns;		   /* the last release, on the grid; 0: none */
	int64_t ahead_ns;		   /* what the clock of the grid is ahead of CLOCK_MONOTONIC */
	double before_ns, steps;	   /* the release before it, and how many points lie between */
	int64_t last_start_ns;		   /* of the activation before; 0: unknown, since events were lost */
	int64_t returned_ns;		   /* when its wait returned last */
	int64_t busy_until_ns;		   /* ran from its last start until then without a wait; 0: unknown */
	int64_t seen_ns;		   /* when it was last at its wait, and on its grid */
	int64_t gap_from_ns, gap_until_ns; /* events were lost meanwhile */
	size_t off_grid_in_row, looks;	   /* looks: returns without a wait since the activation began */
	int64_t off_grid_ns;		   /* the last expiry off the grid */

	bool in_late_wait;	     /* at the end, it is in a wait for a point that has passed */
	bool skips_waits;	     /* it did not wait for some points */
	size_t late_waits;	     /* waits for points that had passed */
	int64_t activations, others; /* others: returns of the wait that its source did not end */
};

/* Returns false if there is no memory. */
void cycles_begin(struct cycles *cycles, const struct cycle_wish *wish, cycle_take take, void *user);

/* The thread enters a call that can wait. */
void cycles_enter(struct cycles *cycles, const struct wait *wait);

/* The call has returned. */
void cycles_return(struct cycles *cycles, const struct waits *waits, const struct wait *wait);

/* Events were lost in this time. */
void cycles_lost(struct cycles *cycles, const struct waits *waits, int64_t from_ns, int64_t until_ns);

/* Chooses the wait that begins the cycle, if there are enough waits. Returns whether it is chosen. */
bool cycles_learn(struct cycles *cycles, const struct waits *waits, bool at_end);

/*
 * Ends: counts what is unfinished. gone: the thread ended at now_ns. Returns whether the thread is stuck,
 * that is, did not come back to its wait for more than ten periods.
 */
bool cycles_end(struct cycles *cycles, const struct waits *waits, int64_t now_ns, bool gone);

/* Returns the period (ns) of the model, or the usual time between two releases; 0: unknown. */
double cycles_period_ns(const struct cycles *cycles);

void cycles_free(struct cycles *cycles);

#endif
