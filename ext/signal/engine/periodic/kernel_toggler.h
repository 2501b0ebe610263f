/* SPDX-License-Identifier: MIT */
/*
 * The kernel task of the probe periodic, in the module rtgauge_periodic. Its samples become toggles. The
 * steps from the expected time to the toggled line have series of their own.
 */
#ifndef RTGAUGE_PERIODIC_KERNEL_TOGGLER_H
#define RTGAUGE_PERIODIC_KERNEL_TOGGLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/series.h"
#include "ext/signal/engine/path/path.h"
#include "ext/signal/engine/periodic/edges.h"
#include "kmod/device.h"

struct kernel_toggler {
	struct kmod_device device;
	struct rtgauge_periodic parameters;
	struct series *steps; /* KERNEL_STEPS of them: from the expected time to the toggled line */
	int64_t edges;	      /* toggles up to now; a loss of samples counts as at least one */
	struct rtgauge_status status;
	bool started, over;
};

/* Opens the module's device. Returns 0, or the exit status after an `error` line. */
int kernel_toggler_open(struct kernel_toggler *task, const struct path_kernel_end *end, int cpu);

/* Starts the task for these releases. Returns 0, or the exit status after an `error` line. */
int kernel_toggler_start(struct kernel_toggler *task, const struct series *grid);

/* Feeds the new measurements. Returns false if the task has ended and everything is fed. */
bool kernel_toggler_take(struct kernel_toggler *task, struct edges *edges, struct json *j);

void kernel_toggler_stop(struct kernel_toggler *task);

/* Writes a result and marks after the end. */
void kernel_toggler_conclude(const struct kernel_toggler *task, struct json *j);

#endif
