/* SPDX-License-Identifier: MIT */
/*
 * What every measuring probe does around its measured path: the options that all have, threads that wait at a
 * gate, and a probe's life in its order: options and permission, `hello` to `armed`, go, drain, summaries to
 * `end`.
 */
#ifndef RTGAUGE_HARNESS_H
#define RTGAUGE_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/options.h"
#include "base/series.h"
#include "harness/cpus.h"
#include "harness/explain.h"
#include "harness/measuring_options.h"
#include "harness/measuring_thread.h"
#include "harness/refusal.h"

struct peer_process;

/* A probe. */
struct harness {
	/* the probe's, constant */
	const struct option_entry *table;
	size_t state_size;					/* of what its steps share; 0: nothing */
	void (*hello)(const struct harness *h, struct json *j); /* members of its own in `hello`; or NULL */
	int hog_percent; /* of its CPU that a thread may take before the watchdog ends the probe; 0: the usual
			  */
	/* Its steps, in this order; each gives 0 or, after an `error` line, the exit status. */
	int (*check)(struct harness *h);   /* numbers that do not go together; or NULL. It may still choose
					    * other steps than these. */
	int (*prepare)(struct harness *h); /* on the CPUs that are chosen: threads, series and their memory */
	int (*started)(struct harness *h); /* the threads wait at their gate; or NULL */
	int (*run)(struct harness *h);	   /* from `go` to the end */
	explain_who explained; /* of a series; or NULL: latencies that a thread is told with (measurers) */
	/* results and marks of its own, after the summaries; or NULL */
	void (*conclude)(struct harness *h, struct json *j);

	/* the probe's, set by `prepare`, or constant */
	struct harness_thread **threads;
	unsigned int thread_count;
	struct series **series;
	struct harness_thread **measurers; /* of each series: whose usage is told with it; or NULL */
	unsigned int series_count;
	struct peer_process *peer; /* which the probe starts and ends in between; or NULL: then the process
				    * joins a co-kernel before `prepare`, else in it */

	/* the harness's */
	void *state; /* memory of state_size, zeroed before `check` */
	struct json j;
	struct probe_cpus
		*cpus; /* set before `prepare`; not in here: it is large, and this has initial values */
	int64_t asleep_ns;
	const char *ended_by; /* harness_end_by */
	int dma_error;
};

/*
 * The whole life of a probe: options, CPUs, permission and memory lock; the threads up to their gate, where
 * the caller becomes the thread that drains; `hello`, `series`, `armed`; `go`, and what the probe does then.
 * With `--check` as the last word only options, CPUs and what the probe's own check says. Gives the exit
 * status.
 */
int harness_run(struct harness *h, int argc, char **argv);

/* Opens the gate for every thread, then begins the series, whose start_ns is set. */
void harness_go(struct harness *h);

/* Announces and begins one more, the next of h->series, whose start_ns is set, while the others go on. */
void harness_add_series(struct harness *h, struct series *s);

/* Starts the watchdog where the policy is one that can take the machine. length_ns: of the whole probe;
 * INT64_MAX: until stopped. */
void harness_watch(struct harness *h, int64_t length_ns);

/* Tells the threads to end where the host, a signal, the watchdog or a full disk asks for it. true: they were
 * told. */
bool harness_stopping(struct harness *h);

/* Sleeps for this long or until there is a command; says to the watchdog that the drain lives. */
void harness_pause(int64_t ns);

/* Tells the threads to end for a reason that the probe knows; what told them before stays the reason. */
void harness_end_by(struct harness *h, const char *reason);

/* Calls drain, which gives false when all threads have ended, until then, and once more for what came since.
 */
void harness_drain(struct harness *h, bool (*drain)(struct harness *h, struct json *j), int64_t pause_ns);

/* The first series that this thread measures; -1: none of its own. */
int harness_series_of(const struct harness *h, const struct harness_thread *t);

/* Joins the threads; last windows, summaries, marks, `end` (reason: where nothing else ended it). Gives the
 * exit status. */
int harness_finish(struct harness *h, const char *reason);

#endif
