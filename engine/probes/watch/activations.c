// SPDX-License-Identifier: MIT
#include "probes/watch/activations.h"

static void release(struct watch_track *track, int64_t time_ns)
{
	int64_t before_ns = track->last_release_ns;

	track->state = WATCH_WOKEN;
	track->known = true;
	track->woken_ns = 0;
	track->now = (struct watch_activation){
		.release_ns = time_ns,
		.period_ns = before_ns ? time_ns - before_ns : 0,
		.executed = true,
	};
	track->last_release_ns = time_ns;
}

/* It went to sleep, but the kernel did not trace when. */
static void slept_unseen(struct watch_track *track)
{
	track->unended += track->known;
	track->known = false;
	track->state = WATCH_ASLEEP;
}

void watch_track_runs(struct watch_track *track, const struct sched_event *event)
{
	track->woken_ns = 0;
	track->cpu = event->cpu;
	if (track->state != WATCH_WOKEN && track->state != WATCH_READY && track->state != WATCH_HELD)
		return;
	if (track->state == WATCH_WOKEN)
		track->now.latency_bound_ns = event->time_ns - track->now.release_ns;
	track->now.executed = false;
	track->state = WATCH_RUNNING;
	track->run_since_ns = event->time_ns;
}

static void woken(struct watch_track *track, const struct sched_event *event)
{
	if (event->current == track->tid) { /* if it is woken on its way to sleep, it does not sleep */
		watch_track_runs(track, event);
		return;
	}
	if (track->state == WATCH_RUNNING && event->cpu == track->cpu)
		slept_unseen(track); /* its CPU runs another task */
	if (track->state == WATCH_HELD)
		track->state = WATCH_READY;
	else if (track->state == WATCH_ASLEEP || track->state == WATCH_UNKNOWN)
		release(track, event->time_ns);
	else if (track->state == WATCH_RUNNING)
		track->woken_ns = event->time_ns;
}

static bool begins_to_run(struct watch_track *track, const struct sched_event *event)
{
	bool first;

	if (track->state == WATCH_RUNNING && track->woken_ns) {
		int64_t woken_ns = track->woken_ns;

		slept_unseen(track);
		release(track, woken_ns);
	} else if (track->state == WATCH_RUNNING) {
		track->now.executed = false; /* it is unknown when it was preempted */
	}
	first = track->state == WATCH_WOKEN && track->known;
	track->state = WATCH_RUNNING;
	track->run_since_ns = event->time_ns;
	track->cpu = event->cpu;
	if (!first)
		return false;
	track->now.start_ns = event->time_ns;
	track->now.begun = true;
	track->now.cpu = event->cpu;
	return true;
}

static bool stops_running(struct watch_track *track, const struct sched_event *event, bool *preempted)
{
	bool told = track->known;

	*preempted = event->runnable;
	track->woken_ns = 0;
	if (track->state == WATCH_RUNNING)
		track->now.execution_ns += event->time_ns - track->run_since_ns;
	else
		track->now.executed = false;
	if (track->state == WATCH_WOKEN)
		track->now.latency_bound_ns = event->time_ns - track->now.release_ns;
	if (event->runnable) {
		track->state = track->known ? WATCH_READY : WATCH_UNKNOWN;
		return false;
	}
	if (event->held) {
		track->state = WATCH_HELD;
		return false;
	}
	if (!track->now.begun)
		track->now.cpu = event->cpu;
	track->state = WATCH_ASLEEP;
	track->now.end_ns = event->time_ns;
	track->now.done = true;
	track->known = false;
	return told;
}

bool watch_track_event(struct watch_track *track, const struct sched_event *event,
		       struct watch_activation *activation, bool *preempted)
{
	bool told = false;

	*preempted = false;
	if (event->kind == SCHED_WAKING)
		woken(track, event);
	else if (event->from == track->tid)
		told = stops_running(track, event, preempted);
	else
		told = begins_to_run(track, event);
	*activation = track->now;
	return told;
}

void watch_track_lost(struct watch_track *track)
{
	track->state = WATCH_UNKNOWN;
	track->known = false;
	track->last_release_ns = track->woken_ns = 0;
}
