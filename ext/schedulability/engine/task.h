/* SPDX-License-Identifier: MIT */
/* A task of the set, with its thread and the data of each activation for the drain. */
#ifndef RTGAUGE_TASKSET_TASK_H
#define RTGAUGE_TASKSET_TASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ring.h"
#include "base/series.h"
#include "ext/schedulability/engine/busy_loop.h"
#include "ext/schedulability/engine/task_list.h"
#include "harness/harness.h"
#include "rt/runtime.h"

enum metric {
	LATENCY,
	RESPONSE,
	FROM_START,
	PERIOD,
	JITTER,
	TARDINESS,
	EXECUTION,
	PREEMPTIONS, /* last, because not every runtime counts them */
	METRICS_OF_ALL,
	METRICS = RUNTIME_COUNTS_SWITCHES ? METRICS_OF_ALL : PREEMPTIONS,
};

/* The data of an activation, from which everything else is computed. */
struct sample {
	int64_t number, start_ns, finish_ns, execution_ns, preemptions;
};

struct task {
	/* of the measuring thread */
	_Alignas(CACHE_LINE) struct slot_ring ring;
	struct sample *slots;
	struct busy_loop_trace trace;
	int64_t lost, unfinished;

	/* constant */
	enum busy_loop_by execution;
	int64_t timeline_ns; /* length of the timeline from time 0; 0: no timeline */
	_Atomic int *others; /* tasks of the set that still run measured activations */
	struct harness_thread thread;
	const struct task_entry *entry;
	struct busy_loop_cost cost;
	int64_t counting_ns; /* the cost of reading its CPU time and its switches after each activation */
	int64_t start_ns;    /* release of activation 0 */
	int64_t total, limit_ns;
	_Atomic bool traced; /* whether the trace is complete */

	/* of the drain */
	bool trace_written;
	int64_t last_number, last_start_ns;
	struct series series[METRICS];
};

/* Allocates the task's samples and timeline, and sets its thread's function. Returns false if there is no
 * memory. */
bool task_make(struct task *t, const struct task_entry *entry);

#endif
