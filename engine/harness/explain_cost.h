/* SPDX-License-Identifier: MIT */
/*
 * What the kernel's events cost the latencies: short stretches of the warm-up, by turns without events and
 * with them (without, with, with, without, ...), each with a histogram of its own.
 */
#ifndef RTGAUGE_EXPLAIN_COST_H
#define RTGAUGE_EXPLAIN_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* What the warm-up is longer by for stretches of this time in all; 0: there are none. */
int64_t explain_cost_ns(int64_t stretches_ns);

/* The stretches lie behind begin_ns. Events are on now, and are switched so. */
void explain_cost_begin(int64_t begin_ns, int64_t stretches_ns, void (*switch_events)(bool on));

/* Switches where the time for it has come. Before, all samples that there are were fed. */
void explain_cost_turn(void);

/* A sample of the warm-up. */
void explain_cost_sample(int64_t release_ns, int64_t value_ns);

/* Writes a line `stretch` for each. */
void explain_cost_write(struct json *j);

#endif
