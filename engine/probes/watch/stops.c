// SPDX-License-Identifier: MIT
#include "probes/watch/stops.h"

#include <stdio.h>

void stops_begin(struct stops *stops, int64_t now_ns)
{
	*stops = (struct stops){.since_ns = now_ns, .unknown = stops->unknown};
}

static bool finish(struct stops *stops, struct stop *done)
{
	bool active = stops->active;

	if (active)
		*done = stops->now;
	stops->active = false;
	return active;
}

static void end_part(struct stops *stops, int64_t time_ns)
{
	if (time_ns - stops->part_ns >= stops->longest_ns) {
		stops->longest_ns = time_ns - stops->part_ns;
		snprintf(stops->now.by, sizeof(stops->now.by), "%s", stops->part);
	}
	stops->now.until_ns = time_ns;
}

/* Begins a part, in the present stop if it belongs to it. */
static bool begin_part(struct stops *stops, int64_t time_ns, bool belongs, const char *by, struct stop *done)
{
	bool ended = false;

	if (!stops->active || (!belongs && time_ns - stops->now.until_ns >= STOPS_JOIN_NS)) {
		ended = finish(stops, done);
		stops->now = (struct stop){.from_ns = time_ns};
		stops->longest_ns = 0;
	}
	stops->active = true;
	stops->part_ns = time_ns;
	snprintf(stops->part, sizeof(stops->part), "%s", by);
	return ended;
}

/* The thread runs, although no event showed that it got the CPU. */
static void forget(struct stops *stops)
{
	stops->unknown++;
	stops->active = false;
	stops->depth = 0;
}

bool stops_interrupt(struct stops *stops, int64_t time_ns, const struct interrupt *interrupt,
		     struct stop *done)
{
	bool ended = false;

	if (stops->state == STOPS_OFF)
		forget(stops);
	stops->state = STOPS_RUNS;
	if (interrupt->begins && !stops->depth++)
		ended = begin_part(stops, time_ns - interrupt->lasted_ns, false, interrupt->name, done);
	if (interrupt->ends && stops->depth && !--stops->depth) {
		end_part(stops, time_ns);
		stops->reschedules = interrupt->reschedules;
	}
	return ended;
}

bool stops_leave(struct stops *stops, int64_t time_ns, const char *by, struct stop *done)
{
	bool belongs = stops->depth || stops->reschedules;

	if (stops->state == STOPS_OFF)
		forget(stops);
	stops->state = by ? STOPS_OFF : STOPS_SLEEPS;
	stops->reschedules = false;
	if (stops->depth)
		end_part(stops, time_ns);
	return by ? begin_part(stops, time_ns, belongs, by, done) : finish(stops, done);
}

void stops_return(struct stops *stops, int64_t time_ns)
{
	struct stop none;

	stops->unknown += stops->state == STOPS_RUNS;
	if (stops->state == STOPS_UNKNOWN) /* it has been off since then at least */
		begin_part(stops, stops->since_ns, false, "a task", &none);
	if (stops->state == STOPS_UNKNOWN || stops->state == STOPS_OFF)
		end_part(stops, time_ns);
	stops->state = STOPS_RUNS;
}

bool stops_settle(struct stops *stops, int64_t now_ns, bool last, struct stop *done)
{
	bool lasts = stops->depth || stops->state == STOPS_OFF;

	if (!stops->active || (!last && (lasts || now_ns - stops->now.until_ns < STOPS_JOIN_NS)))
		return false;
	if (lasts)
		end_part(stops, now_ns);
	return finish(stops, done);
}
