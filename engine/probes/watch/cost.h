/* SPDX-License-Identifier: MIT */
/*
 * What watching costs the program: the CPU time of its threads each time that they run, in stretches of the
 * warm-up by turns without events and with them (without, with, with, without, ...).
 */
#ifndef RTGAUGE_WATCH_COST_H
#define RTGAUGE_WATCH_COST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/json.h"

#define WATCH_COST_NS (2 * NS_PER_S) /* what the warm-up is longer by */

/* The stretches begin at once, and end before begin_ns + WATCH_COST_NS. */
void watch_cost_begin(int64_t begin_ns, const pid_t *tids, int count);

/* Switches events where the time for it has come. true: what was recorded has a gap here. */
bool watch_cost_turn(int64_t now_ns);

/* Writes a result `watch-cost` for each stretch. */
void watch_cost_write(struct json *j);

#endif
