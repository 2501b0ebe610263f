/* SPDX-License-Identifier: MIT */
/*
 * The edges of the probe periodic, as the drain knows them. It computes how late each edge was, and how
 * far its half-period is from the nominal one. Both come from the task that made it, and from the observer
 * that saw it.
 */
#ifndef RTGAUGE_PERIODIC_EDGES_H
#define RTGAUGE_PERIODIC_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/series.h"
#include "ext/signal/engine/periodic/edge_reference.h"
#include "ext/signal/engine/periodic/tasks.h"

enum edges_series { SELF_LATENCY, SELF_JITTER, OTHER_LATENCY, OTHER_JITTER, EDGES_SERIES };

struct edges {
	struct series *series; /* EDGES_SERIES of them */
	int64_t start_ns, half_ns;
	struct edge_reference *reference; /* the wire's record of them; NULL: none */
	bool both;			  /* the maker's releases are known, and belong to the seen edges */

	/* made */
	int64_t position, last_ns, last_edge;
	int64_t *releases; /* release times of the last edges; 0: there was no room for that edge */

	/* seen */
	bool holding;
	struct sight held, last;
	int64_t seen, doubled, lost;
};

/* Returns false if there is no memory. */
bool edges_make(struct edges *e);

/* Feeds the series with all edges since the last call. */
void edges_feed_toggle(struct edges *e, const struct toggle *toggle, struct json *j);
void edges_take_toggles(struct edges *e, struct toggler *toggler, struct json *j);
void edges_take_sights(struct edges *e, struct observer *observer, struct json *j);

#endif
