/* SPDX-License-Identifier: MIT */
/*
 * Measures what the kernel's events cost the latencies, in short stretches of the warm-up alternately
 * without events and with them (without, with, with, without, ...). Each stretch has its own histogram.
 */
#ifndef RTGAUGE_EXPLAIN_COST_H
#define RTGAUGE_EXPLAIN_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* The time added to the warm-up for stretches of this total length; 0: none. */
int64_t explain_cost_ns(int64_t stretches_ns);

/* The stretches begin after begin_ns. Events are on now, and are switched from then on. */
void explain_cost_begin(int64_t begin_ns, int64_t stretches_ns, void (*switch_events)(bool on));

/* Switches if the time has come. All samples so far must have been fed. */
void explain_cost_turn(void);

/* Takes a sample of the warm-up. */
void explain_cost_sample(int64_t release_ns, int64_t value_ns);

/* Writes a `stretch` line for each. */
void explain_cost_write(struct json *j);

#endif
