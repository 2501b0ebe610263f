/* SPDX-License-Identifier: MIT */
/* Finds out which of a thread's waits begins its cycle, from a part of its waits (docs/probes/watch.md). */
#ifndef RTGAUGE_WATCH_CYCLE_CHOICE_H
#define RTGAUGE_WATCH_CYCLE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/watch/grid.h"
#include "probes/watch/waits.h"

#define CANDIDATES_MAX 16
#define CYCLE_RARE 20 /* candidates that end less than 1/CYCLE_RARE as many waits do not compete */

/* What ends the wait: its own time-out, a timer that was armed before, or somebody else. */
enum cycle_source { SOURCE_TIME_OUT, SOURCE_TIMER, SOURCE_DATA };

enum cycle_kind {
	CYCLE_UNKNOWN,
	CYCLE_PERIODIC,	    /* the expiries lie on a grid */
	CYCLE_RELATIVE,	    /* the thread always sleeps for the same time */
	CYCLE_OWN_SCHEDULE, /* neither */
	CYCLE_DATA,	    /* others wake it */
	CYCLE_POLLER,	    /* it never sleeps */
};

/* Waits that are of one kind: the same call, on the same object, ended by the same source. */
struct cycle_candidate {
	struct blocking_call call;
	uint64_t object, place; /* place 0: any */
	uint64_t timer;		/* SOURCE_TIMER */
	struct grid grid;	/* CYCLE_PERIODIC */
	double sleep_ns;	/* CYCLE_RELATIVE: how long it sleeps */
	/* The thread also sleeps for a fixed time in the same call, which does not count; 0: it does not. */
	double pause_ns;
	double interval_ns; /* median from one such release to the next; 0: unknown */
	size_t count;	    /* waits that it ended */
	int64_t slept_ns;   /* in these waits */
	int64_t rounded_ns; /* by how much its expiries may lie after the points of its grid */
	enum cycle_source source;
	enum cycle_kind kind;
	bool any_object;	  /* whatever futex it waits on */
	bool shared;		  /* the call also waits for other times, which are not on the grid */
	bool twin;		  /* another wait in the same call has a grid of the same period */
	bool hidden;		  /* the call rounds its times so far that it hides its releases */
	bool no_time;		  /* if it is late, it sleeps for no time */
	bool anew;		  /* the grid sometimes begins anew, at another time */
	bool lock, storage, wall; /* a lock; a disk or memory; on the wall clock */
};

/* What the user said. */
struct cycle_wish {
	int64_t call;	   /* number of the call; -1: any */
	int fd;		   /* -1: any */
	int64_t period_ns; /* 0: unknown */
};

struct cycle_choice {
	struct cycle_candidate candidates[CANDIDATES_MAX];
	size_t count;
	int chosen;   /* -1: there is no candidate */
	bool unclear; /* several could begin the cycle */
};

/* Returns the release of this wait by the source of the candidate, on CLOCK_MONOTONIC; 0: the source did not
 * end it. */
int64_t cycle_release_ns(const struct cycle_candidate *candidate, const struct wait *wait);

/* Returns what the clock of the candidate's timer is ahead of CLOCK_MONOTONIC in this wait; 0 unless it is
 * the wall clock, on which the grid then lies. */
int64_t cycle_ahead_ns(const struct cycle_candidate *candidate, const struct wait *wait);

/* Returns how far (ns) an expiry may lie from its point of the candidate's grid. */
double cycle_tolerance_ns(const struct cycle_candidate *candidate);

/* Returns whether the wait is one in which the candidate's source can end it. */
bool cycle_waits_at(const struct cycle_candidate *candidate, const struct wait *wait);

/* Returns whether the wait is a sleep for a fixed time within the cycle, and not the candidate's. */
bool cycle_is_pause(const struct cycle_candidate *candidate, const struct wait *wait);

/* Returns whether the wait is a sleep for no time, as of a program that computes the time left and is late.
 */
bool cycle_sleeps_for_no_time(const struct wait *wait);

/* Chooses from waits that have returned, in order of time. Returns false if there is no memory. */
bool cycle_choose(const struct wait *waits, size_t count, const struct cycle_wish *wish,
		  struct cycle_choice *choice);

#endif
