/* SPDX-License-Identifier: MIT */
/*
 * The edges of the probe periodic as the drain knows them, one by one: how late each was and how far its
 * half-period is from the nominal one, by the task that made it and by the observer that saw it.
 */
#ifndef RTGAUGE_PERIODIC_EDGES_H
#define RTGAUGE_PERIODIC_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/series.h"
#include "probes/periodic/edge_reference.h"
#include "probes/periodic/tasks.h"

enum edges_series { SELF_LATENCY, SELF_JITTER, OTHER_LATENCY, OTHER_JITTER, EDGES_SERIES };

struct edges {
	struct series *series; /* EDGES_SERIES of them */
	int64_t start_ns, half_ns;
	struct edge_reference *reference; /* what the wire says of them; NULL: there is none */
	bool both; /* who makes them is known too: its releases are those of what is seen */

	/* made */
	int64_t position, last_ns, last_edge;
	int64_t *releases; /* times of the last edges' releases; 0: that edge could not be kept */

	/* seen */
	bool holding;
	struct sight held, last;
	int64_t seen, doubled, lost;
};

/* false: there is not the memory. */
bool edges_make(struct edges *e);

/* Feeds the series with what came since. */
void edges_feed_toggle(struct edges *e, const struct toggle *toggle, struct json *j);
void edges_take_toggles(struct edges *e, struct toggler *toggler, struct json *j);
void edges_take_sights(struct edges *e, struct observer *observer, struct json *j);

#endif
