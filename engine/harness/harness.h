/* SPDX-License-Identifier: MIT */
/*
 * What every measuring probe does around its measured path: the options that all have, threads that wait at a
 * gate, and a probe's life in its order: options and permission, `hello` to `armed`, go, drain, summaries to
 * `end`.
 */
#ifndef RTGAUGE_HARNESS_H
#define RTGAUGE_HARNESS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/cpuset.h"
#include "base/json.h"
#include "base/options.h"
#include "base/series.h"
#include "base/usage.h"
#include "harness/cpus.h"
#include "harness/explain.h"
#include "harness/refusal.h"
#include "rt/deadline.h"
#include "rt/policy.h"

/* The options that every measuring probe has, and the entries of its table that read them. */
struct harness_options {
	struct cpuset cpus;
	int64_t priority, duration_ns, count, warm_up_ns, dma_latency_us;
	int policy, memory_lock;
	const char *samples_dir;
	bool go;
};

/* Constant once the threads are started. A probe may set other defaults before it calls harness_run. */
extern struct harness_options harness_options;

extern const char *const harness_on_off[];

/* Where the measured task runs. */
enum space { SPACE_USER, SPACE_KERNEL };
extern const char *const harness_spaces[];

#define HARNESS_OPTION_CPU                                                                                   \
	{                                                                                                    \
		.name = "cpu", .kind = OPTION_CPUS, .value = &harness_options.cpus,                          \
		.help = "CPUs to measure: 0-3,6; default all online"                                         \
	}
#define HARNESS_OPTION_POLICY                                                                                \
	{                                                                                                    \
		.name = "policy", .kind = OPTION_CHOICE, .value = &harness_options.policy,                   \
		.choices = policy_names, .help = "scheduling"                                                \
	}
#define HARNESS_OPTION_POLICY_ALL                                                                            \
	{                                                                                                    \
		.name = "policy", .kind = OPTION_CHOICE, .value = &harness_options.policy,                   \
		.choices = policy_all_names, .help = "scheduling"                                            \
	}
#define HARNESS_OPTION_PRIORITY                                                                              \
	{                                                                                                    \
		.name = "priority", .kind = OPTION_INT, .value = &harness_options.priority, .min = 1,        \
		.max = 99, .help = "real-time priority (98)"                                                 \
	}
#define HARNESS_OPTION_DURATION                                                                              \
	{                                                                                                    \
		.name = "duration-ns", .kind = OPTION_INT, .value = &harness_options.duration_ns, .min = 0,  \
		.max = INT64_MAX / 4, .help = "of the measured phase; 0: until stopped"                      \
	}
#define HARNESS_OPTION_COUNT(what)                                                                           \
	{                                                                                                    \
		.name = "count", .kind = OPTION_INT, .value = &harness_options.count, .min = 0,              \
		.max = INT64_MAX / 4, .help = (what)                                                         \
	}
#define HARNESS_OPTION_WARM_UP                                                                               \
	{                                                                                                    \
		.name = "warm-up-ns", .kind = OPTION_INT, .value = &harness_options.warm_up_ns, .min = 0,    \
		.max = 3600 * NS_PER_S, .help = "set aside at the beginning (500000000)"                     \
	}
#define HARNESS_OPTION_SPACE(variable, what)                                                                 \
	{                                                                                                    \
		.name = "space", .kind = OPTION_CHOICE, .value = (variable), .choices = harness_spaces,      \
		.help = (what)                                                                               \
	}
/* What a probe at a real-time or normal policy has; counted: what --count counts. */
#define HARNESS_OPTIONS_MEASURING(counted)                                                                   \
	HARNESS_OPTION_POLICY, HARNESS_OPTION_PRIORITY, HARNESS_OPTION_DURATION,                             \
		HARNESS_OPTION_COUNT(counted), HARNESS_OPTION_WARM_UP, HARNESS_OPTIONS_MACHINE
/* How memory, C-states, samples and the beginning are handled. */
#define HARNESS_OPTIONS_MACHINE                                                                              \
	{.name = "dma-latency-us",                                                                           \
	 .kind = OPTION_INT,                                                                                 \
	 .value = &harness_options.dma_latency_us,                                                           \
	 .min = -1,                                                                                          \
	 .max = INT32_MAX,                                                                                   \
	 .help = "keep C-states within this exit latency (0); -1: leave them"},                              \
		{.name = "memory-lock",                                                                      \
		 .kind = OPTION_CHOICE,                                                                      \
		 .value = &harness_options.memory_lock,                                                      \
		 .choices = harness_on_off,                                                                  \
		 .help = "lock memory"},                                                                     \
		{.name = "samples-dir",                                                                      \
		 .kind = OPTION_TEXT,                                                                        \
		 .value = &harness_options.samples_dir,                                                      \
		 .help = "folder for raw samples"},                                                          \
	{                                                                                                    \
		.name = "go", .kind = OPTION_FLAG, .value = &harness_options.go,                             \
		.help = "begin at once and do not read standard input"                                       \
	}

/* A measuring thread; a probe has it inside of its own struct. */
struct harness_thread {
	/* the probe's, set before harness_start */
	int (*prepare)(
		struct harness_thread *t); /* on the thread, before it is ready: 0 or an errno; or NULL */
	void (*measure)(struct harness_thread *t); /* from the gate to the end; not called where it is stopped
						    before */
	int cpu, priority;
	enum policy policy;
	struct deadline deadline; /* for POLICY_DEADLINE */
	bool free;		  /* not pinned to its CPU */

	/* the harness's; `measure` may use them */
	int schedstat, error;
	struct usage before, after; /* what was counted between the two is told where usage_known */
	bool usage_known, moved, policy_refused;
	pthread_t thread;
	pid_t tid;
	clockid_t cpu_clock;
	_Atomic bool ready, done;
	_Atomic int64_t given_up_ns; /* the watchdog took it from a CPU that another thread held; 0: not */
};

/* What all threads share. */
struct harness_shared {
	_Alignas(CACHE_LINE) _Atomic bool stop; /* alone: every measuring thread reads it each time */
	_Alignas(CACHE_LINE) _Atomic bool over_threshold;
	sem_t gate; /* one post lets one thread go */
};

extern struct harness_shared harness_shared;

/* Starts the thread and waits until it is ready. 0, or the exit status after an `error` line. */
int harness_thread_start(struct harness_thread *t);

/* Tells every thread to end and wakes those that sleep. Again and again: a signal that comes just before a
 * thread sleeps does not wake it. */
void harness_threads_stop(struct harness_thread *const *threads, unsigned int count);

struct peer_process;

/* A probe. */
struct harness {
	/* the probe's, constant */
	const struct option_entry *table;
	size_t option_count;
	void (*hello)(struct json *j); /* members of its own in `hello`; or NULL */
	int hog_percent; /* of its CPU that a thread may take before the watchdog ends the probe; 0: the usual
			  */
	/* Its steps, in this order; each gives 0 or, after an `error` line, the exit status. */
	int (*check)(void);		   /* numbers that do not go together; or NULL */
	int (*make)(struct harness *h);	   /* on the CPUs that are chosen: threads, series and their memory */
	int (*started)(struct harness *h); /* the threads wait at their gate; or NULL */
	int (*run)(struct harness *h);	   /* from `go` to the end */
	explain_who explained; /* of a series; or NULL: latencies that a thread is told with (measurers) */
	void (*conclude)(struct json *j); /* results and marks of its own, after the summaries; or NULL */

	/* the probe's, set by `make`, or constant */
	struct harness_thread **threads;
	unsigned int thread_count;
	struct series **series;
	struct harness_thread **measurers; /* of each series: whose usage is told with it; or NULL */
	unsigned int series_count;
	struct peer_process *peer; /* which the probe starts and ends in between; or NULL: then the process
				    * joins a co-kernel before `make`, else in it */

	/* the harness's */
	struct json j;
	struct probe_cpus
		*cpus; /* set before `make`; not in here: it is large, and this has initial values */
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

/* Calls take, which gives false when all threads have ended, until then, and once more for what came since.
 */
void harness_drain(struct harness *h, bool (*take)(struct json *j), int64_t pause_ns);

/* Joins the threads; last windows, summaries, marks, `end` (reason: where nothing else ended it). Gives the
 * exit status. */
int harness_finish(struct harness *h, const char *reason);

#endif
