/* SPDX-License-Identifier: MIT */
/* The three modes, which process the edges. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "histogram.h"
#include "protocol.h"

/* Returns NULL if it is valid, else a sentence that says what is wrong. */
const char *measure_configure(const struct configuration *configuration);
const struct configuration *measure_configuration(void);
bool measure_start(void);
void measure_stop(void);
/* Processes the edges that came; call it often. */
void measure_poll(void);
bool measure_running(void);
/* Returns the ticks after which it must be called again at the latest. */
uint32_t measure_due(void);
void measure_state(struct state *state);
const struct histogram *measure_histogram(void);

#endif
