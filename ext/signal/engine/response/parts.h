/* SPDX-License-Identifier: MIT */
/*
 * Splits a response as Adam et al. (2021, sec. 4.1, fig. 2) do: interrupt latency, service time, scheduling
 * latency and scheduling duration, each with its own series.
 */
#ifndef RTGAUGE_RESPONSE_PARTS_H
#define RTGAUGE_RESPONSE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/series.h"
#include "ext/signal/engine/path/path.h"
#include "ext/signal/engine/response/trace.h"

enum part {
	PART_INTERRUPT_LATENCY,
	PART_SERVICE_TIME,
	PART_SCHEDULING_LATENCY,
	PART_SCHEDULING_DURATION,
	PARTS
};

/* A response whose events may not all have come: events of a CPU are read up to some ten ms late. */
struct unparted {
	int64_t from_ns, woke_ns;
};

struct parts {
	struct series *series; /* PARTS of them; NULL: responses are not split */
	bool known[PARTS];     /* whether this path has such a part */
	int interrupt;	       /* as of trace_open */
	int64_t matched, unmatched;

	struct trace trace;
	struct trace_event *events;	       /* events that were traced */
	unsigned int event_first, event_count; /* events before event_first belong to finished responses */
	struct unparted *waiting;	       /* time for all events of a response to arrive */
	unsigned int waiting_first, waiting_count;
};

/* Decides which parts this path has. The slave's input must be open. from_stimulus: whether the stimulus's
 * time is known. Returns false if there is no memory. */
bool parts_choose(struct parts *parts, const struct path_end *slave, bool from_stimulus, int cpu);

/*
 * Takes one response. The slave woke at woke_ns, for a stimulus at from_ns or, without from_stimulus,
 * after from_ns. parts_take splits it later. Calls come in time order.
 */
void parts_feed(struct parts *parts, int64_t from_ns, int64_t woke_ns, struct json *j);

/* Reads the new trace events, and splits the responses that are old enough; at the last call, all
 * responses. */
void parts_take(struct parts *parts, bool last, struct json *j);

/* Writes a result and marks. */
void parts_conclude(const struct parts *parts, struct json *j);

#endif
