/* SPDX-License-Identifier: MIT */
/*
 * Assembles the timerlat events of one CPU into activations. The kernel arms its timer for the next release
 * only when the thread is back, and skips releases that have passed by then (wait_next_period of
 * kernel/trace/trace_osnoise.c). No event reports these missed ones. An event has no release either: the
 * release is its time minus its latency, plus the time that the kernel took from reading the clock to
 * stamping the event.
 */
#ifndef RTGAUGE_WAKEUP_ACTIVATIONS_H
#define RTGAUGE_WAKEUP_ACTIVATIONS_H

#include <stdbool.h>
#include <stdint.h>

/* `context` of the event: where the kernel took the latency. */
enum timerlat_context { TIMERLAT_IRQ, TIMERLAT_THREAD, TIMERLAT_USER, TIMERLAT_CONTEXTS };

#define TIMERLAT_NONE INT64_MIN

struct timerlat_event {
	int64_t time_ns;
	uint32_t number; /* number of the activation on this CPU; skipped releases have no number */
	int context;
	int64_t latency_ns;
};

struct timerlat_activation {
	int64_t release_ns;
	int64_t latency_ns[TIMERLAT_CONTEXTS]; /* TIMERLAT_NONE: there was no such event */
	int64_t missed;			       /* releases that were skipped directly before it */
	int64_t lost;			       /* activations directly before it whose events were lost */
	int64_t back_ns; /* time of the previous activation's last event; missed activations were later */
};

/* interval_ns is set before the first event, and settled when the base must no longer change. The rest is
 * private. */
struct timerlat_track {
	int64_t interval_ns;
	bool settled;

	bool begun;
	int64_t base_ns; /* the release that is number 0 */
	uint32_t number;
	int64_t least, likely; /* of the unfinished activation: its release, counted from the base */
	int64_t latency_ns[TIMERLAT_CONTEXTS], lost;
	int64_t before, back_ns; /* of the previous activation: its release, counted from the base */
};

/* Takes the next event. Returns true if it finishes an activation, which is then in *over. */
bool timerlat_track_event(struct timerlat_track *track, const struct timerlat_event *event,
			  struct timerlat_activation *over);

/* Returns the last activation, or false if there is none. */
bool timerlat_track_end(struct timerlat_track *track, struct timerlat_activation *over);

#endif
