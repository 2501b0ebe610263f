/* SPDX-License-Identifier: MIT */
/* A watched thread: its series, what affected it, and what changed about it. */
#ifndef RTGAUGE_WATCH_FOLLOWER_H
#define RTGAUGE_WATCH_FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/threads.h"
#include "base/json.h"
#include "base/series.h"
#include "harness/explain.h"
#include "probes/watch/broken_rules.h"
#include "probes/watch/cycles.h"
#include "probes/watch/sched_events.h"
#include "probes/watch/stops.h"
#include "probes/watch/waits.h"

#define OTHERS_MAX 12 /* most tasks that are named as preempting or waking a thread */
#define SLEEPS_MAX 8

/* OVERRUN: by how much a release for which the thread did not wait was late, at least. UNCERTAIN: responses
 * after which the thread may have run such a release before it waited again. LEAST_RESPONSE: how long the
 * responses of both are at least. */
enum metric { LATENCY, RESPONSE, EXECUTION, PERIOD, OVERRUN, UNCERTAIN, LEAST_RESPONSE, GAP, METRICS };

/* A task or call that affected a thread: how often, and how long the thread slept because of it, in total
 * and at most. */
struct other {
	char name[32];
	int64_t count, total_ns, max_ns;
};

/* The measured phase, and what all followers share. */
struct phase {
	int64_t from_ns, until_ns;
	pid_t own;	 /* the engine's thread that drains */
	bool interrupts; /* the kernel reports those of the threads */
	struct json *j;
};

struct follower {
	const struct phase *phase;
	struct watched_thread thread;
	struct thread_place place;
	char label[40];
	struct waits waits;
	struct cycles cycles;
	struct thread_counts before, after;
	struct other preempted_by[OTHERS_MAX], woken_by[OTHERS_MAX], stopped_by[OTHERS_MAX],
		sleeps_in[SLEEPS_MAX], blocked_in[SLEEPS_MAX];
	struct other inversions[OTHERS_MAX],
		inversions_lent[OTHERS_MAX]; /* by locks that do not lend priority, and by locks that do */
	int point;			     /* the last point that it reached */
	int64_t point_ns;		     /* when; 0: never, or events were lost since then */
	bool outside_call;		     /* a call that it left by itself, not interrupted by a signal */
	int64_t inversion_max_ns, waited_max_ns;
	struct explained who; /* of the present activation */
	int cpu;	      /* the CPU on which the activation began */
	int64_t begun_ns;     /* when it was first seen */
	int64_t cpu_ns;	      /* its CPU time then */
	int64_t activations, overruns, unknown_releases, lost_ends, preemptions;
	int64_t cut_latency_ns,
		cut_response_ns;	 /* the age of the activation at the end of the step; 0: none */
	int64_t unknown_execution;	 /* activations without this value */
	int64_t own_ns;			 /* for how long the engine's thread kept it from running */
	int64_t own_since_ns;		 /* ... at present; 0: it does not */
	int64_t throttled, throttled_ns; /* it gave way to a task of a lower class: how often, how long */
	int64_t throttled_since_ns;	 /* ... at present; 0: it does not */
	int64_t ended_ns;		 /* it has ended; 0: it lives */
	int64_t blind_until_ns;		 /* events before this are incomplete */
	bool poller, stuck, no_memory;
	bool takes_turns;   /* its cycles move between threads */
	struct stops stops; /* of a poller */
	struct broken_rules rules;
	int64_t observed_ns; /* for how long its stops were followed */
	struct series series[METRICS];
};

/* Begins to follow a thread. label: set; unique among the threads. has_calls: the kernel reports system
 * calls. */
void follower_begin(struct follower *f, const struct phase *phase, const struct cycle_wish *wish,
		    bool has_calls, int64_t now_ns);

/* Takes an event of the thread. */
void follower_take(struct follower *f, const struct sched_event *event, const struct clock_offsets *offsets);

/* Takes the kernel's counts of the thread, as they are at now_ns. */
void follower_count(struct follower *f, int64_t now_ns);

/* Returns the thread as it is now, with the sleep in which it is. */
struct explained follower_now(const struct follower *f);

/* Events were lost in this time. */
void follower_lost(struct follower *f, int64_t from_ns, int64_t until_ns);

/* All events up to now were taken: chooses the wait that begins the cycle, if that is possible. */
void follower_learn(struct follower *f, int64_t now_ns);

/* Returns whether the thread never sleeps, as far as is known by now. */
bool follower_polls(const struct follower *f, int64_t now_ns);

/* Follows the stops of a poller from now on. */
void follower_begin_stops(struct follower *f, int64_t now_ns);

/* Ends: counts what is unfinished. */
void follower_end(struct follower *f, int64_t now_ns);

/* Ends: finds out which of these threads take turns in one cycle, as those of a pool. */
void followers_find_turns(struct follower *const *followers, int count);

/* Writes the results of the thread, and its marks. */
void follower_conclude(const struct follower *f, struct json *j);

#endif
