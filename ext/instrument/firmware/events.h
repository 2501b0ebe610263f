/* SPDX-License-Identifier: MIT */
/* The stream of raw edges: many to a frame. */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture.h"

void events_start(void);
void events_add(const struct edge *edge, bool accepted);
/* Sends what has waited for 10 ms, or all. */
void events_flush(bool all);
bool events_waiting(void);
uint64_t events_dropped(void);

#endif
