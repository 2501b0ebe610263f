/* SPDX-License-Identifier: MIT */
/*
 * A response taken apart as Adam et al. (2021, sec. 4.1, fig. 2) do: interrupt latency, service time,
 * scheduling latency, scheduling duration, each a series of its own.
 */
#ifndef RTGAUGE_RESPONSE_PARTS_H
#define RTGAUGE_RESPONSE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/series.h"
#include "probes/response/trace.h"
#include "signal/path.h"

enum part {
	PART_INTERRUPT_LATENCY,
	PART_SERVICE_TIME,
	PART_SCHEDULING_LATENCY,
	PART_SCHEDULING_DURATION,
	PARTS
};

/* A response whose events may not all have come: what a CPU traced is read up to some ten ms late. */
struct unparted {
	int64_t from_ns, woke_ns;
};

struct parts {
	struct series *series; /* PARTS of them; NULL: nothing is taken apart */
	bool known[PARTS];     /* there is such a part on this path */
	int interrupt;	       /* as of trace_open */
	int64_t matched, unmatched;

	struct trace trace;
	struct trace_event *events;	       /* that were traced */
	unsigned int event_first, event_count; /* those before event_first are of responses that are done */
	struct unparted *waiting;	       /* for all of their events to have come */
	unsigned int waiting_first, waiting_count;
};

/* Which parts there are on this path, whose slave's input is open. from_stimulus: the stimulus's time is
 * known. false: there is not the memory. */
bool parts_choose(struct parts *parts, const struct path_end *slave, bool from_stimulus, int cpu);

/*
 * One response: the slave woke at woke_ns, for a stimulus of from_ns, or (not from_stimulus) after from_ns.
 * It is taken apart later, by parts_take; calls come in order of time.
 */
void parts_feed(struct parts *parts, int64_t from_ns, int64_t woke_ns, struct json *j);

/* Reads what the kernel traced since, and takes the responses apart that are old enough; all of them at the
 * last. */
void parts_take(struct parts *parts, bool last, struct json *j);

/* A result and marks: what was told apart by what. */
void parts_conclude(const struct parts *parts, struct json *j);

#endif
