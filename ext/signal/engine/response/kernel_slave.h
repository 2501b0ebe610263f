/* SPDX-License-Identifier: MIT */
/*
 * The kernel slave of the probe response, in the module rtgauge_response. It answers from the top half of
 * the line's interrupt, from its threaded handler, or from a kernel thread. Its steps have series of their
 * own.
 */
#ifndef RTGAUGE_RESPONSE_KERNEL_SLAVE_H
#define RTGAUGE_RESPONSE_KERNEL_SLAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/series.h"
#include "ext/signal/engine/path/path.h"
#include "kmod/device.h"

struct kernel_slave {
	struct kmod_device device;
	struct rtgauge_response parameters;
	int cpu;	      /* -1: any CPU that the interrupt is on */
	struct series *steps; /* KERNEL_STEPS of them: from the edge on the wire to the answer */
	bool known[KERNEL_STEPS];
	int64_t *entries; /* times of its entries, for the reference; the oldest are forgotten */
	uint64_t entries_taken, entries_put;
	uint64_t next; /* the number of the next sample, if none is missed */
	int64_t last_ns;
	struct rtgauge_status status;
	bool started;
};

/* Opens the module's device. from_wire: whether the edge's time on the wire is known. Without a line, the
 * module makes the stimuli itself, at the intervals of the parameters, which must be set before it starts.
 * Returns 0, or the exit status after an `error` line. */
int kernel_slave_open(struct kernel_slave *slave, const struct path_kernel_end *end, int cpu, bool from_wire);

/* Starts answering. Returns 0, or the exit status after an `error` line. */
int kernel_slave_start(struct kernel_slave *slave);

/* Returns whether the module makes the stimuli itself. */
bool kernel_slave_stimulates(const struct kernel_slave *slave);

/* Feeds the new measurements: the steps, and the times to the answer (NULL: the master measures them),
 * from the module's entry or from its own stimulus. A stimulus of its own that is not answered before the
 * next one is missed. */
void kernel_slave_take(struct kernel_slave *slave, struct series *answers, struct json *j);

/* Returns the first time between these two at which the slave was entered; 0: it was not. Calls come in
 * time order. */
int64_t kernel_slave_entry(struct kernel_slave *slave, int64_t after_ns, int64_t until_ns);

void kernel_slave_stop(struct kernel_slave *slave);

/* Writes a result, after the end. */
void kernel_slave_conclude(const struct kernel_slave *slave, struct json *j);

#endif
