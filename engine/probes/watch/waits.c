// SPDX-License-Identifier: MIT
#include "probes/watch/waits.h"

#include <errno.h>
#include <stdlib.h>

#define SAME_EXPIRY_NS 50000 /* a sleep for the rest of an interrupted one */
#define NO_TIME_NS 5000	     /* ... of which none is left */
#define RESTART_FIRST (-516) /* ERESTART_RESTARTBLOCK to ERESTARTSYS (include/linux/errno.h) */
#define RESTART_LAST (-512)

void waits_begin(struct waits *waits, pid_t tid, bool has_calls)
{
	waits->tid = tid;
	waits->has_calls = has_calls;
	waits->interrupted.call.number = GAP_CALL;
}

int64_t waits_ran_ns(const struct waits *waits, int64_t now_ns)
{
	return waits->ran_ns + (waits->state == WAIT_RUNNING ? now_ns - waits->since_ns : 0);
}

int64_t waits_expiry_ns(const struct waits *waits, const struct wait_expiry *expiry, int64_t now_ns)
{
	bool wall;

	return expiry->wall && waits->offsets
		       ? clock_offsets_monotonic(waits->offsets, expiry->there_ns, now_ns, &wall)
		       : expiry->expiry_ns;
}

static void pause_begins(struct waits *waits, int64_t time_ns)
{
	waits->pauses[waits->pause_count++ % WAIT_PAUSES] = (struct wait_pause){.from_ns = time_ns};
}

static void pause_ends(struct waits *waits, int64_t time_ns)
{
	struct wait_pause *last =
		waits->pause_count ? &waits->pauses[(waits->pause_count - 1) % WAIT_PAUSES] : NULL;

	if (last && !last->until_ns)
		last->until_ns = time_ns;
}

/* Returns when a stretch without the CPU certainly lasted until. If switches are not traced, a thread that
 * was woken may have run since. */
static int64_t pause_until_ns(const struct waits *waits, const struct wait_pause *pause, int64_t now_ns)
{
	bool woken = waits->state == WAIT_PREEMPTED && waits->since_ns > pause->from_ns;

	if (pause->until_ns)
		return pause->until_ns;
	return woken && waits->doubts ? waits->since_ns : now_ns;
}

int64_t waits_off_until(const struct waits *waits, int64_t time_ns, int64_t now_ns)
{
	unsigned int kept = waits->pause_count < WAIT_PAUSES ? waits->pause_count : WAIT_PAUSES;

	for (unsigned int i = 0; i < kept; i++) {
		const struct wait_pause *pause = &waits->pauses[i];
		int64_t until_ns = pause_until_ns(waits, pause, now_ns);

		if (pause->from_ns <= time_ns && time_ns < until_ns)
			return until_ns;
	}
	return time_ns;
}

static void leaves_cpu(struct waits *waits, enum wait_state state, int64_t time_ns)
{
	if (waits->state == WAIT_RUNNING)
		waits->ran_ns += time_ns - waits->since_ns;
	else
		waits->doubts++; /* it is unknown when it began to run */
	pause_ends(waits, waits->since_ns);
	pause_begins(waits, time_ns);
	waits->state = state;
	waits->since_ns = time_ns;
}

/* An event shows that it has the CPU. Since when is unknown: at the latest since this event, and not before
 * it was woken. */
static void runs(struct waits *waits, const struct sched_event *event)
{
	waits->cpu = event->cpu;
	if (waits->state == WAIT_RUNNING)
		return;
	waits->doubts++;
	pause_ends(waits, waits->state == WAIT_PREEMPTED ? waits->since_ns : event->time_ns);
	waits->state = WAIT_RUNNING;
	waits->since_ns = event->time_ns;
}

static struct wait_expiry *find_timer(struct waits *waits, uint64_t timer)
{
	for (unsigned int i = 0; i < WAIT_TIMERS; i++) {
		if (waits->timers[i].timer == timer)
			return &waits->timers[i];
	}
	return NULL;
}

/* The timer has expired, and ended this wait. */
static void fire(struct waits *waits, struct wait_expiry *timer, struct wait *wait)
{
	waits->expired[timer - waits->timers] = true;
	if (wait->fired_count < WAIT_FIRED)
		wait->fired[wait->fired_count++] = *timer;
}

/* A thread sets an expired timer anew when it takes its expirations: in the call that waits for it, or after
 * a wait for any of several objects. */
static enum wait_news take_expiration(struct waits *waits, struct wait_expiry *timer, int64_t now_ns)
{
	bool by_any = waits->any.exit_ns >= timer->expiry_ns && !(waits->waiting && waits->now.slept);

	if (timer->expiry_ns > now_ns || waits->expired[timer - waits->timers])
		return NEWS_NOTHING;
	if (by_any) {
		waits->any.fired_count = 0;
		fire(waits, timer, &waits->any);
		return NEWS_FIRED;
	}
	if (waits->waiting)
		fire(waits, timer, &waits->now);
	return NEWS_NOTHING;
}

/* Keeps the newest timers. */
static enum wait_news arm(struct waits *waits, const struct wait_expiry *expiry, int64_t now_ns)
{
	struct wait_expiry *timer = find_timer(waits, expiry->timer);
	enum wait_news news = timer ? take_expiration(waits, timer, now_ns) : NEWS_NOTHING;

	if (!timer)
		timer = find_timer(waits, 0);
	if (!timer) {
		timer = waits->timers;
		for (unsigned int i = 1; i < WAIT_TIMERS; i++) {
			if (waits->timers[i].expiry_ns < timer->expiry_ns)
				timer = &waits->timers[i];
		}
	}
	*timer = *expiry;
	waits->expired[timer - waits->timers] = false;
	return news;
}

/* Returns whether the time of the interrupted sleep had passed, and this is a sleep for no time instead. */
static bool is_rest_of_none(const struct waits *waits, const struct wait_expiry *expiry)
{
	int64_t before_ns = waits->broken_off.expiry_ns;

	return before_ns && before_ns <= waits->now.enter_ns &&
	       llabs(expiry->expiry_ns - expiry->armed_ns) <= NO_TIME_NS;
}

static enum wait_news take_timer(struct waits *waits, const struct sched_event *event,
				 const struct clock_offsets *offsets)
{
	struct wait_expiry expiry = {
		.timer = event->timer, .armed_ns = event->time_ns, .there_ns = event->expiry_ns};
	struct wait *now = &waits->now;
	bool own;

	expiry.expiry_ns = clock_offsets_monotonic(offsets, event->expiry_ns, event->time_ns, &expiry.wall);
	runs(waits, event);
	if (!waits->has_calls && !waits->waiting) {
		*now = (struct wait){.call.number = -1, .enter_ns = event->time_ns, .own = expiry};
		waits->waiting = true;
		return NEWS_NOTHING;
	}
	if (event->use == USE_UNKNOWN && waits->lost_call)
		return NEWS_NOTHING;   /* it may be the time-out of a call whose entry was lost */
	if (event->use == USE_UNKNOWN) /* a call arms its time-out before it sleeps, and perhaps again */
		own = waits->waiting &&
		      (now->own.expiry_ns ? now->own.timer == event->timer
					  : !now->slept && !find_timer(waits, event->timer));
	else
		own = event->use == USE_TIME_OUT ||
		      (waits->waiting && blocking_call_has_special_timer(&now->call));
	if (!own)
		return arm(waits, &expiry, event->time_ns);
	if (!waits->waiting)
		return NEWS_NOTHING;
	if (llabs(expiry.expiry_ns - waits->broken_off.expiry_ns) <= SAME_EXPIRY_NS ||
	    is_rest_of_none(waits, &expiry))
		expiry.armed_ns =
			expiry.expiry_ns - (waits->broken_off.expiry_ns - waits->broken_off.armed_ns);
	now->own = expiry;
	return NEWS_NOTHING;
}

static enum wait_news enter(struct waits *waits, const struct sched_event *event)
{
	struct wait *now = &waits->now;

	runs(waits, event);
	waits->waiting = waits->lost_call = false;
	if (blocking_call_continues(&event->call) && waits->interrupted.call.number != GAP_CALL)
		*now = (struct wait){.call = waits->interrupted.call, .own = waits->interrupted.own};
	else
		*now = (struct wait){.call = event->call};
	waits->broken_off = waits->interrupted.call.number == now->call.number ? waits->interrupted.own
									       : (struct wait_expiry){0};
	waits->interrupted.call.number = GAP_CALL;
	now->enter_ns = event->time_ns;
	now->ran_enter_ns = waits_ran_ns(waits, event->time_ns);
	now->doubts_enter = waits->doubts;
	if (!blocking_call_can_wait(&now->call))
		return NEWS_NOTHING;
	waits->waiting = true;
	return NEWS_ENTERED;
}

static enum wait_news leave(struct waits *waits, const struct sched_event *event, int64_t result,
			    const struct clock_offsets *offsets)
{
	struct wait *now = &waits->now;

	if (now->own.wall) /* it may have been set during the wait */
		now->own.expiry_ns =
			clock_offsets_monotonic(offsets, now->own.there_ns, event->time_ns, &now->own.wall);

	now->exit_ns = event->time_ns;
	now->result = result;
	now->interrupted = result == -EINTR || (result >= RESTART_FIRST && result <= RESTART_LAST);
	now->ran_exit_ns = waits_ran_ns(waits, event->time_ns);
	now->doubts_exit = waits->doubts;
	now->cpu = event->cpu;
	if (!waits->waiting)
		return NEWS_NOTHING;
	waits->waiting = false;
	if (now->interrupted)
		waits->interrupted = *now;
	/* A signal that interrupts a wait for others ends no wait for a timer. */
	if ((blocking_call_waits_for_any(&now->call) || now->call.number < 0) &&
	    (!now->interrupted || blocking_call_waits_for_signal(&now->call)))
		waits->any = *now;
	return NEWS_RETURNED;
}

static enum wait_news take_waking(struct waits *waits, const struct sched_event *event)
{
	struct wait *now = &waits->now;
	bool asleep = waits->state == WAIT_ASLEEP || waits->state == WAIT_HELD;

	if (waits->waiting) {
		now->woken_ns = event->time_ns;
		now->waker = event->current;
		now->ended = event->hardirq   ? ENDED_BY_INTERRUPT
			     : event->softirq ? ENDED_BY_SOFTIRQ
					      : ENDED_BY_TASK;
	}
	if (waits->state == WAIT_RUNNING && event->current != waits->tid && event->cpu == waits->cpu) {
		waits->doubts++; /* its CPU runs another task: it went to sleep unseen */
		waits->state = WAIT_UNKNOWN;
		now->slept |= waits->waiting;
	}
	if (!asleep)
		return NEWS_NOTHING;
	if (waits->waiting)
		now->slept_ns += event->time_ns - waits->since_ns;
	waits->state = WAIT_PREEMPTED;
	waits->since_ns = event->time_ns;
	return NEWS_WOKEN;
}

static enum wait_news take_switch(struct waits *waits, const struct sched_event *event,
				  const struct clock_offsets *offsets)
{
	struct wait *now = &waits->now;

	if (event->to == waits->tid) {
		if (waits->state == WAIT_RUNNING)
			waits->doubts++; /* it is unknown when it lost the CPU */
		pause_ends(waits, event->time_ns);
		waits->state = WAIT_RUNNING;
		waits->since_ns = event->time_ns;
		waits->cpu = event->cpu;
		if (waits->has_calls || !waits->waiting || !now->slept)
			return NEWS_NOTHING;
		return leave(waits, event, now->own.expiry_ns ? 0 : 1, offsets);
	}
	if (event->runnable) {
		leaves_cpu(waits, WAIT_PREEMPTED, event->time_ns);
		/* A deadline thread that yields stays runnable until its next period. */
		now->slept |= waits->waiting && now->own.expiry_ns;
		return NEWS_PREEMPTED;
	}
	leaves_cpu(waits, event->held ? WAIT_HELD : WAIT_ASLEEP, event->time_ns);
	if (!waits->has_calls && !waits->waiting && !event->held) {
		*now = (struct wait){.call.number = -1,
				     .enter_ns = event->time_ns,
				     .ran_enter_ns = waits->ran_ns,
				     .doubts_enter = waits->doubts};
		waits->waiting = true;
	}
	now->slept |= waits->waiting;
	return NEWS_SLEEPS;
}

enum wait_news waits_take(struct waits *waits, const struct sched_event *event,
			  const struct clock_offsets *offsets)
{
	waits->offsets = offsets;
	switch (event->kind) {
	case SCHED_WAKING:
		return take_waking(waits, event);
	case SCHED_SWITCH:
		return take_switch(waits, event, offsets);
	case SCHED_SYSCALL:
		return enter(waits, event);
	case SCHED_RETURN:
		runs(waits, event);
		return leave(waits, event, event->result, offsets);
	case SCHED_TIMER:
		return take_timer(waits, event, offsets);
	case SCHED_SIGNAL:
	case SCHED_FORK:
	case SCHED_LOST:
	case SCHED_INTERRUPT:
	case SCHED_POINT:
		break;
	}
	return NEWS_NOTHING;
}

void waits_lost(struct waits *waits)
{
	waits->state = WAIT_UNKNOWN;
	waits->waiting = false;
	waits->lost_call = waits->has_calls;
	waits->any.exit_ns = 0;
	waits->doubts++;
	waits->interrupted.call.number = GAP_CALL;
	for (unsigned int i = 0; i < WAIT_TIMERS; i++)
		waits->expired[i] = true; /* an expiry from before the gap may be old */
	if (waits->pause_count) {
		struct wait_pause *last = &waits->pauses[(waits->pause_count - 1) % WAIT_PAUSES];

		last->until_ns = last->until_ns ? last->until_ns : last->from_ns;
	}
}
