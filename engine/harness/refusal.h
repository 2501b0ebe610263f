/* SPDX-License-Identifier: MIT */
/*
 * `error` lines for what the kernel refuses a probe. They say what was refused, with the errno and the
 * numbers that decide it in `detail` (docs/formats/stream.md); why, and what to do, says the host. Each gives
 * the exit status.
 */
#ifndef RTGAUGE_HARNESS_REFUSAL_H
#define RTGAUGE_HARNESS_REFUSAL_H

#include <stdbool.h>

#include "rt/deadline.h"

/* Real-time scheduling at this priority; other_allowed: the probe takes --policy other. */
int refuse_priority(int error, int priority, bool other_allowed);

/* SCHED_DEADLINE; cpu: that the thread is pinned to, -1 where it is not. */
int refuse_deadline(int error, const struct deadline *deadline, int cpu);

/* A CPU that did not run `what` for 5 s, with the task that holds it if one is found; instead: what to
 * choose. */
int refuse_held_cpu(int cpu, const char *what, const char *instead);

int refuse_memory_lock(int error);

/* Memory for what is measured: the lock's limit where that can be why. */
int harness_no_memory(void);

/* Whether it is this user's limit on locked memory that refuses more of it. */
bool harness_memory_limited(void);

#endif
