/* SPDX-License-Identifier: MIT */
/* Makes edges on a line at exact distances: a state machine of PIO1 takes them from its FIFO. */
#ifndef STIMULUS_H
#define STIMULUS_H

#include <stdbool.h>
#include <stdint.h>

/* The least distance of two edges, and the longest (31 bits of ticks). */
#define STIMULUS_MIN_TICKS 8u
#define STIMULUS_MAX_TICKS 0x7fffffffu

/* The line begins at this level. */
void stimulus_start(unsigned pin, bool high);
void stimulus_stop(void);
/* The line takes the level `ticks` after the previous edge if that is still possible, otherwise after now,
 * exact to some cycles. Returns false if the FIFO is full. */
bool stimulus_edge(uint32_t ticks, bool high);

#endif
