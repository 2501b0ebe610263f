/* SPDX-License-Identifier: MIT */
/* The three modes: what becomes of the edges. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "histogram.h"
#include "protocol.h"

/* NULL if it is right, else what is wrong with it, in a sentence. */
const char *measure_configure(const struct configuration *configuration);
const struct configuration *measure_configuration(void);
bool measure_start(void);
void measure_stop(void);
/* Works on the edges that came; call it often. */
void measure_poll(void);
bool measure_running(void);
/* Ticks until it wants to be called at the latest. */
uint32_t measure_due(void);
void measure_state(struct state *state);
const struct histogram *measure_histogram(void);

#endif
