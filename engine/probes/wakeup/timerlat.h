/* SPDX-License-Identifier: MIT */
/*
 * Runs the kernel's timerlat tracer (Documentation/trace/timerlat-tracer.rst) in an instance of tracefs
 * that the caller makes and removes. The tracer's settings in the folder `osnoise` affect the whole
 * machine. Whoever makes the instance notes the settings first and restores them afterwards.
 */
#ifndef RTGAUGE_WAKEUP_TIMERLAT_H
#define RTGAUGE_WAKEUP_TIMERLAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "probes/wakeup/activations.h"
#include "rt/policy.h"
#include "trace/instance.h"

struct tracer {
	/* of the user */
	bool user; /* The threads are the caller's, one for each CPU, which then read tracer_wait_file;
		    * otherwise they are the kernel's. */
	int64_t drops, dropped_events; /* how often the kernel dropped events; how many, if known */

	/* of the tracer */
	int root, instance;
	struct cpuset cpus;
	int pipes[CPUSET_MAX];
	unsigned int id;
	struct trace_field number, context, latency;
	size_t data_offset, page_size;
	unsigned char *page;
};

/* Starts the tracer, a struct zeroed before, on these CPUs, with this interval (100 us to 1 s, whole us).
 * Returns 0, or the exit status after an `error` line. */
int tracer_open(struct tracer *t, const char *instance, const struct cpuset *cpus, int64_t interval_ns);

/* Returns a file for the caller's pinned thread. A read of it lasts until the next activation. -1 with
 * errno on failure. Close it before tracer_close, which lets the kernel kill its owner. */
int tracer_wait_file(const struct tracer *t, int cpu);

/* Gives the kernel's threads a policy. Returns false if not all threads were found. */
bool tracer_set_policy(const struct tracer *t, enum policy policy, int priority);

/* Passes on the CPU's events since the last call, in order. */
void tracer_take(struct tracer *t, int cpu, void (*take)(void *user, const struct timerlat_event *event),
		 void *user);

/* Stops recording. Everything recorded can still be read. */
void tracer_stop(const struct tracer *t);

/* Ends the tracer with the kernel's threads. Call it once. */
void tracer_close(const struct tracer *t);

#endif
