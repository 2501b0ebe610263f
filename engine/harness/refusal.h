/* SPDX-License-Identifier: MIT */
/*
 * Writes `error` lines when the kernel refuses something. They name what was refused, with the errno and
 * the deciding numbers in `detail` (docs/formats/stream.md). The host explains them. Each function returns
 * the exit status.
 */
#ifndef RTGAUGE_HARNESS_REFUSAL_H
#define RTGAUGE_HARNESS_REFUSAL_H

#include <stdbool.h>

#include "rt/deadline.h"

/* Real-time scheduling at this priority. other_allowed: whether the probe accepts --policy other. */
int refuse_priority(int error, int priority, bool other_allowed);

/* SCHED_DEADLINE. cpu: the CPU of a pinned thread, else -1. */
int refuse_deadline(int error, const struct deadline *deadline, int cpu);

/* A CPU that did not run `what` for 5 s, with the task that holds the CPU, if it is found. instead: what
 * to choose. */
int refuse_held_cpu(int cpu, const char *what, const char *instead);

int refuse_memory_lock(int error);

/* Memory for the measurement, with the limit on locked memory if that can be the cause. */
int harness_no_memory(void);

/* Returns whether this user's limit on locked memory refuses this many more bytes. */
bool harness_memory_limited(void);

#endif
