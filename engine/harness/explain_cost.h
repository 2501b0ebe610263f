/* SPDX-License-Identifier: MIT */
/*
 * Measures what the kernel's events add to the latencies. Short stretches of the warm-up are alternately
 * without and with events (without, with, with, without, ...). Each stretch has its own histogram.
 */
#ifndef RTGAUGE_EXPLAIN_COST_H
#define RTGAUGE_EXPLAIN_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* Returns the time that is added to the warm-up for stretches of this total length; 0: none. */
int64_t explain_cost_ns(int64_t stretches_ns);

/* The stretches begin after begin_ns. Events are enabled now, and are switched from then on. */
void explain_cost_begin(int64_t begin_ns, int64_t stretches_ns, void (*switch_events)(bool on));

/* Switches events when it is time. All samples up to now must have been fed. */
void explain_cost_turn(void);

/* Returns whether the events were on at this time, and are not switched any more. */
bool explain_cost_had_events(int64_t time_ns);

/* Takes a sample from the warm-up. */
void explain_cost_sample(int64_t release_ns, int64_t value_ns);

/* Writes a `stretch` line for each stretch. */
void explain_cost_write(struct json *j);

#endif
