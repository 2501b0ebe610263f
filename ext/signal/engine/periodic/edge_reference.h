/* SPDX-License-Identifier: MIT */
/*
 * The edges of the probe periodic, by the time stamps of the wire's kernel module (signal/wire.h). It
 * computes latency and jitter from these times, and how far the task's and the observer's times differ
 * from them.
 */
#ifndef RTGAUGE_PERIODIC_EDGE_REFERENCE_H
#define RTGAUGE_PERIODIC_EDGE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/series.h"

enum edge_reference_series {
	WIRE_LATENCY,
	WIRE_JITTER,
	SELF_DIFFERENCE,
	OTHER_DIFFERENCE,
	EDGE_REFERENCE_SERIES
};

struct referenced_edge {
	int64_t number, release_ns, toggled_ns, seen_ns; /* seen_ns 0: not seen yet */
};

struct edge_reference {
	struct series *series; /* EDGE_REFERENCE_SERIES of them */
	int64_t half_ns;
	bool observed; /* whether there is an observer */

	struct referenced_edge *waiting; /* edges that wait until the wire has recorded them, by number */
	int64_t first, after;		 /* numbers: the oldest waiting edge, and one more than the newest */
	int64_t last_toggled_ns, last_out_ns, last_number;
	int64_t matched, unmatched;
};

/* Returns false if there is no memory. */
bool edge_reference_make(struct edge_reference *r);

/* Notes an edge that was made, or one that was seen. The first has number 1. */
void edge_reference_made(struct edge_reference *r, const struct referenced_edge *edge);
void edge_reference_seen(struct edge_reference *r, int64_t number, int64_t seen_ns);

/* Compares the edges that the wire has recorded; at the last call, all edges. */
void edge_reference_take(struct edge_reference *r, bool last, struct json *j);

#endif
