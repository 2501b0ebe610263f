// SPDX-License-Identifier: MIT
#include "probes/watch/activations.h"

static void woken(struct watch_track *track, int64_t time_ns)
{
	int64_t before_ns = track->last_release_ns;

	/* Woken while it is on its way to sleep it does not sleep. */
	if (track->state != WATCH_ASLEEP && track->state != WATCH_UNKNOWN)
		return;
	track->state = WATCH_WOKEN;
	track->known = true;
	track->now = (struct watch_activation){
		.release_ns = time_ns,
		.period_ns = before_ns ? time_ns - before_ns : 0,
	};
	track->last_release_ns = time_ns;
}

static bool begins_to_run(struct watch_track *track, const struct sched_event *event)
{
	bool first = track->state == WATCH_WOKEN && track->known;

	track->state = WATCH_RUNNING;
	track->run_since_ns = event->time_ns;
	if (!first)
		return false;
	track->now.start_ns = event->time_ns;
	track->now.cpu = event->cpu;
	return true;
}

static bool stops_running(struct watch_track *track, const struct sched_event *event, bool *preempted)
{
	bool ran = track->state == WATCH_RUNNING;

	if (ran)
		track->now.execution_ns += event->time_ns - track->run_since_ns;
	if (event->runnable) {
		*preempted = true;
		track->state = ran ? WATCH_READY : WATCH_UNKNOWN;
		return false;
	}
	track->untold += !ran && track->known;
	track->state = WATCH_ASLEEP;
	track->now.end_ns = event->time_ns;
	track->now.done = true;
	ran &= track->known;
	track->known = false;
	return ran;
}

bool watch_track_event(struct watch_track *track, const struct sched_event *event,
		       struct watch_activation *activation, bool *preempted)
{
	bool told = false;

	*preempted = false;
	if (event->kind == SCHED_WAKING)
		woken(track, event->time_ns);
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
	track->last_release_ns = 0;
}
