/* SPDX-License-Identifier: MIT */
/*
 * The common part of every measuring probe: its options, threads that wait at a gate, and its life in this
 * order: options and permission, `hello` to `armed`, go, drain, summaries to `end`.
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
	/* the probe's own, constant */
	const struct option_entry *table;
	size_t state_size; /* size of the state that the steps share; 0: none */
	/* writes members of its own in `hello`; may be NULL */
	void (*hello)(const struct harness *h, struct json *j);
	int hog_percent; /* a thread's CPU share at which the watchdog ends the probe; 0: the default */
	/* The probe's steps, in this order. Each returns 0 or, after an `error` line, the exit status. */
	int (*check)(
		struct harness *h); /* checks options together, and may choose other steps; may be NULL */
	int (*prepare)(
		struct harness *h); /* after the CPUs are chosen: makes threads, series and their memory */
	int (*started)(struct harness *h); /* called when the threads wait at their gate; may be NULL */
	int (*run)(struct harness *h);	   /* from `go` to the end */
	explain_who explained;		   /* finds the thread of a series; NULL: the one in `measurers` */
	/* writes the probe's own results and marks, after the summaries; may be NULL */
	void (*conclude)(struct harness *h, struct json *j);

	/* of the probe; set by `prepare`, or constant */
	struct harness_thread **threads;
	unsigned int thread_count;
	struct series **series;
	struct harness_thread **measurers; /* whose usage is reported with each series; may be NULL */
	unsigned int series_count;
	/* a second process, which the probe starts; NULL: this process joins a co-kernel before `prepare`,
	 * otherwise in it */
	struct peer_process *peer;

	/* of the harness */
	void *state; /* memory of state_size, zeroed before `check` */
	struct json j;
	struct probe_cpus *cpus; /* set before `prepare`; it is large, so not in this initialised struct */
	int64_t asleep_ns;
	bool recorded;	      /* a recorder ran when this began */
	const char *ended_by; /* harness_end_by */
	int64_t pause_ns;     /* between two calls of `drain`, which may set it */
	int dma_error;
};

/*
 * Runs the whole life of a probe. First come options, CPUs, permission and memory lock. Then the threads
 * go to their gate, and the caller becomes the thread that drains. Then follow `hello`, `series`, `armed`,
 * `go`, and the probe's own part. With `--check` as the last word, it only checks options, CPUs and the
 * probe's own conditions. Returns the exit status.
 */
int harness_run(struct harness *h, int argc, char **argv);

/* Opens the gate for every thread, and then begins the series, whose start_ns must be set. */
void harness_go(struct harness *h);

/* Announces and begins the next of h->series, whose start_ns must be set, while the others continue. */
void harness_add_series(struct harness *h, struct series *s);

/* Starts the watchdog, if the policy could take over the machine. length_ns: of the whole probe;
 * INT64_MAX: until stopped. */
void harness_watch(struct harness *h, int64_t length_ns);

/* Stops the threads if the host, a signal, the watchdog or a full disk requires it. Returns true if they
 * were stopped. */
bool harness_stopping(struct harness *h);

/* Sleeps for this long, or until a command comes. The watchdog then knows that the drain lives. */
void harness_pause(int64_t ns);

/* Stops the threads for a reason of the probe. An earlier reason stays. */
void harness_end_by(struct harness *h, const char *reason);

/* Calls drain until it returns false because all threads have ended, and then once more for the rest. */
void harness_drain(struct harness *h, bool (*drain)(struct harness *h, struct json *j), int64_t pause_ns);

/* Joins the threads. Writes the last windows, summaries, marks and `end` (reason: used if nothing else
 * ended the probe). Returns the exit status. */
int harness_finish(struct harness *h, const char *reason);

#endif
