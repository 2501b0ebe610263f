// SPDX-License-Identifier: MIT
#include "probes/wakeup/activations.h"

/* This tracer never writes a larger number. */
#define TIME_MAX_NS (INT64_C(1) << 61)
#define EARLY_MAX_NS (INT64_C(1) << 30)

static int64_t floor_divide(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static bool plausible(const struct timerlat_event *event)
{
	return event->time_ns >= 0 && event->time_ns < TIME_MAX_NS && event->latency_ns < TIME_MAX_NS &&
	       event->latency_ns > -EARLY_MAX_NS && event->context >= 0 && event->context < TIMERLAT_CONTEXTS;
}

static void open_activation(struct timerlat_track *track, const struct timerlat_event *event)
{
	track->number = event->number;
	for (int i = 0; i < TIMERLAT_CONTEXTS; i++)
		track->latency_ns[i] = TIMERLAT_NONE;
	track->latency_ns[TIMERLAT_IRQ] = event->latency_ns;
}

/* at: the activation's release, counted from the base. */
static void close_activation(struct timerlat_track *track, int64_t at, struct timerlat_activation *over)
{
	int64_t last_ns = 0;

	over->release_ns = track->base_ns + at * track->interval_ns;
	over->missed = at - track->before - 1 - track->lost;
	over->lost = track->lost;
	over->back_ns = track->back_ns;
	for (int i = 0; i < TIMERLAT_CONTEXTS; i++) {
		over->latency_ns[i] = track->latency_ns[i];
		if (track->latency_ns[i] > last_ns)
			last_ns = track->latency_ns[i];
	}
	track->before = at;
	track->back_ns = over->release_ns + last_ns;
}

bool timerlat_track_event(struct timerlat_track *track, const struct timerlat_event *event,
			  struct timerlat_activation *over)
{
	int64_t release_ns, likely, step, at;

	if (!plausible(event))
		return false;
	if (event->context != TIMERLAT_IRQ) {
		if (track->begun && event->number == track->number &&
		    track->latency_ns[event->context] == TIMERLAT_NONE)
			track->latency_ns[event->context] = event->latency_ns;
		return false;
	}
	release_ns = event->time_ns - event->latency_ns;
	if (!track->begun) {
		track->begun = true;
		track->base_ns = track->back_ns = release_ns;
		track->least = track->likely = track->lost = 0;
		track->before = -1;
		open_activation(track, event);
		return false;
	}
	/* Too late by at most three quarters of an interval, the time from reading the clock to stamping
	 * the event. */
	likely = floor_divide(release_ns - track->base_ns + track->interval_ns / 4, track->interval_ns);
	/* If a number is not above the previous one, or exceeds it by more than the releases in between,
	 * the tracer has restarted. */
	step = (int64_t)(uint32_t)(event->number - track->number);
	if (step == 0 || step > likely - track->least + 1)
		step = 1;
	/* The finished activation is at least `step` releases before this one. This corrects an event that
	 * was stamped very late. */
	at = track->likely < likely - step ? track->likely : likely - step;
	if (at < track->least)
		at = track->least;
	close_activation(track, at, over);
	track->least = at + step;
	track->likely = likely > track->least ? likely : track->least;
	track->lost = step - 1;
	if (!track->settled && likely == track->likely &&
	    release_ns < track->base_ns + likely * track->interval_ns)
		track->base_ns = release_ns - likely * track->interval_ns;
	open_activation(track, event);
	return true;
}

bool timerlat_track_end(struct timerlat_track *track, struct timerlat_activation *over)
{
	if (!track->begun)
		return false;
	close_activation(track, track->likely, over);
	track->begun = false;
	return true;
}
