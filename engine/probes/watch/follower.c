// SPDX-License-Identifier: MIT
#include "probes/watch/follower.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stream.h"

#define UNKNOWN_PART 100
#define TURNS_PART 10 /* threads that take turns leave out more than one in so many points */
#define OWN_PART 100  /* of the latencies: what the engine may cause without a doubt */
#define WAKERS 16
#define WAKER_KNOWN_NS NS_PER_S
#define ORDINARY 100 /* the kernel's first priority that is not real-time (MAX_RT_PRIO) */

static const char *const metrics[METRICS] = {"latency", "response",  "execution",      "period",
					     "overrun", "uncertain", "least-response", "gap"};
static const char *const kinds[] = {
	[CYCLE_UNKNOWN] = "unknown",	       [CYCLE_PERIODIC] = "periodic", [CYCLE_RELATIVE] = "relative",
	[CYCLE_OWN_SCHEDULE] = "own-schedule", [CYCLE_DATA] = "data",	      [CYCLE_POLLER] = "poller"};

/* The last place stands for all tasks that have no place of their own. slept_ns: how long the thread slept
   because of the task, or 0. */
static void count_other(struct other *others, int places, const char *name, int64_t slept_ns)
{
	for (int i = 0; i < places; i++) {
		if (!others[i].count)
			snprintf(others[i].name, sizeof(others[i].name), "%s",
				 i == places - 1 ? "others" : name);
		if (!strcmp(others[i].name, name) || i == places - 1) {
			others[i].count++;
			others[i].total_ns += slept_ns;
			if (slept_ns > others[i].max_ns)
				others[i].max_ns = slept_ns;
			return;
		}
	}
}

static bool is_measured(const struct follower *f, int64_t time_ns)
{
	return time_ns >= f->phase->from_ns && time_ns < f->phase->until_ns;
}

static void take_begun(struct follower *f, const struct activation *a)
{
	f->cpu = a->cpu;
	f->who.held_count = 0;
	f->who.timer_ns = a->timer_ns;
	series_feed_timed(&f->series[LATENCY], a->release_ns, a->start_ns - a->release_ns, f->phase->j);
	if (a->period_ns)
		series_feed_timed(&f->series[PERIOD], a->release_ns, a->period_ns, f->phase->j);
	f->activations += is_measured(f, a->release_ns);
}

static void take_done(struct follower *f, const struct activation *a)
{
	int64_t response_ns = a->end_ns - a->release_ns;

	series_feed_timed(&f->series[RESPONSE], a->release_ns, response_ns, f->phase->j);
	if (!a->certain) {
		series_feed_timed(&f->series[UNCERTAIN], a->release_ns, response_ns, f->phase->j);
		series_feed_timed(&f->series[LEAST_RESPONSE], a->release_ns, a->least_response_ns,
				  f->phase->j);
	}
	if (a->execution_ns >= 0)
		series_feed_timed(&f->series[EXECUTION], a->release_ns, a->execution_ns, f->phase->j);
	else
		f->unknown_execution += is_measured(f, a->release_ns);
}

static void take_activation(void *user, enum cycle_news news, const struct activation *a)
{
	struct follower *f = user;

	switch (news) {
	case CYCLE_BEGUN:
		take_begun(f, a);
		break;
	case CYCLE_DONE:
		take_done(f, a);
		break;
	case CYCLE_OVERRUN:
	case CYCLE_UNKNOWN_RELEASE:
		series_feed_timed(&f->series[OVERRUN], a->release_ns, a->at_least_ns, f->phase->j);
		if (news == CYCLE_OVERRUN)
			series_feed_timed(&f->series[LEAST_RESPONSE], a->release_ns, a->least_response_ns,
					  f->phase->j);
		f->overruns += news == CYCLE_OVERRUN && is_measured(f, a->release_ns);
		f->unknown_releases += news == CYCLE_UNKNOWN_RELEASE && is_measured(f, a->release_ns);
		break;
	case CYCLE_LOST_END:
		f->lost_ends += is_measured(f, a->release_ns);
		break;
	case CYCLE_CUT:
		if (!is_measured(f, a->release_ns))
			break;
		f->cut_response_ns = a->at_least_ns;
		f->cut_latency_ns = a->start_ns ? 0 : a->at_least_ns;
		break;
	}
}

void follower_begin(struct follower *f, const struct phase *phase, const struct cycle_wish *wish,
		    bool has_calls, int64_t now_ns)
{
	f->phase = phase;
	int64_t slices;

	f->begun_ns = now_ns;
	thread_run(f->thread.tid, &f->cpu_ns, &slices);
	for (int m = 0; m < METRICS; m++) {
		f->series[m].cpu = -1;
		f->series[m].metric = metrics[m];
		f->series[m].labels[0] = (struct label){"task", f->label};
	}
	waits_begin(&f->waits, f->thread.tid, has_calls);
	cycles_begin(&f->cycles, wish, take_activation, f);
}

/* The thread slept until another thread woke it. */
static void explain_wait(struct follower *f, int64_t from_ns, int64_t slept_ns, int cpu, bool inverted)
{
	int64_t *max_ns = inverted ? &f->inversion_max_ns : &f->waited_max_ns;
	const struct explained who = {.cpu = cpu, .tid = f->thread.tid};

	if (slept_ns <= *max_ns)
		return;
	*max_ns = slept_ns;
	explain_sleep(&f->series[RESPONSE], from_ns, slept_ns, inverted, &who);
}

/* A task that woke a thread, as it was when it was looked at. */
struct waker {
	pid_t tid;
	int64_t looked_ns; /* 0: never */
	int policy, priority;
	char name[32];
};

static bool is_lower(const struct follower *f, const struct waker *waker)
{
	if (waker->policy < 0 || waker->policy == SCHED_DEADLINE)
		return false;
	return f->place.policy == SCHED_DEADLINE || waker->priority < f->place.priority;
}

/* Returns whether the sleep is the one in which the thread waits for its next release. */
static bool waits_for_release(const struct follower *f)
{
	return f->cycles.chosen && f->waits.waiting && cycle_waits_at(&f->cycles.model, &f->waits.now);
}

static void read_name(pid_t tid, char *name, size_t size)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)tid);
	file = fopen(path, "re");
	if (file && fgets(name, (int)size, file))
		name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* The same tasks wake threads again and again, so each is looked at once in a while. */
static const struct waker *look_at_waker(pid_t tid, int64_t now_ns)
{
	static struct waker wakers[WAKERS];
	struct waker *waker = &wakers[(unsigned int)tid % WAKERS];

	if (waker->tid == tid && waker->looked_ns && now_ns - waker->looked_ns < WAKER_KNOWN_NS)
		return waker;
	*waker = (struct waker){.tid = tid, .looked_ns = now_ns, .name = "a task that has ended"};
	read_name(tid, waker->name, sizeof(waker->name));
	waker->policy = thread_priority(tid, &waker->priority);
	return waker;
}

static bool is_real_time(const struct follower *f)
{
	int policy = f->place.policy;

	return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

/* A cycle is over: the thread waits for its next release. */
static void end_cycle(struct follower *f, int64_t now_ns)
{
	if (is_real_time(f) && is_measured(f, now_ns))
		broken_rules_cycle(&f->rules, now_ns);
}

static void judge_call(struct follower *f)
{
	const struct wait *wait = &f->waits.now;
	struct sleep_end end = {.by = wait->ended == ENDED_BY_SOFTIRQ ? "softirq" : "interrupt"};
	bool release = f->cycles.chosen && cycle_waits_at(&f->cycles.model, wait);

	if (!is_real_time(f))
		return;
	if (wait->slept_ns && wait->ended == ENDED_BY_TASK) {
		const struct waker *waker = look_at_waker(wait->waker, wait->woken_ns);

		end = (struct sleep_end){.by = waker->name, .lower = is_lower(f, waker)};
	}
	broken_rules_call(&f->rules, f->thread.tid, wait, release, &end);
}

void follower_count(struct follower *f, int64_t now_ns)
{
	thread_count(f->thread.tid, &f->after);
	broken_rules_faults(&f->rules, f->after.minor_faults, f->after.major_faults, now_ns);
}

static void count_waker(struct follower *f, const struct sched_event *event, int64_t since_ns)
{
	const struct blocking_call *call = &f->waits.now.call;
	bool in_call = f->waits.waiting && call->number >= 0;
	enum lock_kind lock = in_call ? blocking_call_lock(call) : NO_LOCK;
	int64_t slept_ns = event->time_ns - since_ns;
	const struct waker *waker;
	char room[CALL_NAME_MAX];
	bool inverted;

	if (in_call)
		count_other(f->sleeps_in, SLEEPS_MAX, blocking_call_name(call, room, sizeof(room)), slept_ns);
	if (in_call && f->cycles.active && !waits_for_release(f))
		count_other(f->blocked_in, SLEEPS_MAX, blocking_call_name(call, room, sizeof(room)),
			    slept_ns);
	if (event->hardirq || event->softirq) {
		count_other(f->woken_by, OTHERS_MAX, event->hardirq ? "interrupt" : "softirq", 0);
		return;
	}
	waker = look_at_waker(event->current, event->time_ns);
	count_other(f->woken_by, OTHERS_MAX, waker->name, 0);
	inverted = lock != NO_LOCK && is_lower(f, waker);
	if (in_call && !blocking_call_is_pause(call)) /* another thread can end a pause only with a signal */
		explain_wait(f, since_ns, slept_ns, event->cpu, inverted);
	if (inverted)
		count_other(lock == LOCK_INHERITS ? f->inversions_lent : f->inversions, OTHERS_MAX,
			    waker->name, slept_ns);
}

/* The thread is stopped, or sleeps within its activation. */
static void note_held(struct explained *who, const struct waits *waits, int64_t time_ns)
{
	bool in_call = waits->waiting && waits->now.call.number >= 0;
	struct held *held;
	char room[sizeof(held->call)];

	who->held_count += who->held_count < HELD_MAX; /* if there are more calls, the last one is kept */
	held = &who->held[who->held_count - 1];
	held->since_ns = time_ns;
	snprintf(held->call, sizeof(held->call), "%s",
		 in_call ? blocking_call_name(&waits->now.call, room, sizeof(room)) : "");
}

/* A real-time thread that can run gives way to a task of a lower class only if it is throttled: by the
 * kernel's limit on real-time threads, its control group's runtime, or its deadline's budget (sched(7)). */
static bool is_throttled(const struct sched_event *event)
{
	return event->from_priority < 0 ? event->to_priority >= 0
					: event->from_priority < ORDINARY && event->to_priority >= ORDINARY;
}

static void count_preemption(struct follower *f, const struct sched_event *event)
{
	if (event->to == f->phase->own)
		f->own_since_ns = event->time_ns;
	if (!is_measured(f, event->time_ns) || waits_for_release(f))
		return;
	if (is_throttled(event)) {
		f->throttled++;
		f->throttled_since_ns = event->time_ns;
		return;
	}
	f->preemptions++;
	count_other(f->preempted_by, OTHERS_MAX, event->to_name, 0);
}

static void gets_cpu(struct follower *f, const struct sched_event *event)
{
	if (!f->own_since_ns && event->from == f->phase->own && f->waits.state == WAIT_PREEMPTED)
		f->own_since_ns = f->waits.since_ns; /* it was woken while the engine had the CPU */
	if (f->own_since_ns && is_measured(f, event->time_ns))
		f->own_ns += event->time_ns - f->own_since_ns;
	if (f->throttled_since_ns)
		f->throttled_ns += event->time_ns - f->throttled_since_ns;
	f->own_since_ns = f->throttled_since_ns = 0;
}

static void take_stop(struct follower *f, const struct stop *stop)
{
	int64_t lasted_ns = stop->until_ns - stop->from_ns;

	series_feed_timed(&f->series[GAP], stop->from_ns, lasted_ns, f->phase->j);
	if (is_measured(f, stop->from_ns))
		count_other(f->stopped_by, OTHERS_MAX, stop->by, lasted_ns);
}

/* A sleep is no stop if the thread asked for it: if it is in a call that can wait. */
static void follow_stops(struct follower *f, const struct sched_event *event)
{
	bool asked = f->waits.waiting && !event->runnable && !event->held;
	struct stop stop;
	bool ended = false;

	if (event->kind == SCHED_INTERRUPT)
		ended = stops_interrupt(&f->stops, event->time_ns, &event->interrupt, &stop);
	else if (event->kind == SCHED_SWITCH && event->to == f->thread.tid)
		stops_return(&f->stops, event->time_ns);
	else if (event->kind == SCHED_SWITCH && !event->ended)
		ended = stops_leave(&f->stops, event->time_ns,
				    asked		  ? NULL
				    : !event->runnable	  ? "a sleep in the kernel"
				    : is_throttled(event) ? "throttling"
							  : event->to_name,
				    &stop);
	if (ended)
		take_stop(f, &stop);
}

static void take_sleep(struct follower *f, const struct sched_event *event)
{
	/* The freezer of cgroup v2 stops a thread outside a system call. */
	if (f->outside_call || f->waits.state == WAIT_HELD || (f->cycles.active && !waits_for_release(f)))
		note_held(&f->who, &f->waits, event->time_ns);
}

struct explained follower_now(const struct follower *f)
{
	struct explained now = {.cpu = f->waits.cpu, .tid = f->thread.tid};

	if (f->waits.state == WAIT_ASLEEP || f->waits.state == WAIT_HELD)
		note_held(&now, &f->waits, f->waits.since_ns);
	return now;
}

void follower_take(struct follower *f, const struct sched_event *event, const struct clock_offsets *offsets)
{
	bool measured = is_measured(f, event->time_ns);
	int64_t since_ns = f->waits.since_ns;

	if (event->time_ns < f->blind_until_ns)
		return;
	if (f->stops.since_ns && event->time_ns >= f->stops.since_ns)
		follow_stops(f, event);
	if (event->kind == SCHED_SWITCH && event->to == f->thread.tid)
		gets_cpu(f, event);
	if (event->kind == SCHED_SWITCH && event->from == f->thread.tid && event->ended)
		f->ended_ns = event->time_ns;
	switch (waits_take(&f->waits, event, offsets)) {
	case NEWS_ENTERED:
		f->outside_call = false;
		if (waits_for_release(f))
			end_cycle(f, event->time_ns);
		cycles_enter(&f->cycles, &f->waits.now);
		break;
	case NEWS_RETURNED:
		f->outside_call = !f->waits.now.interrupted;
		judge_call(f);
		cycles_return(&f->cycles, &f->waits, &f->waits.now);
		break;
	case NEWS_FIRED:
		cycles_return(&f->cycles, &f->waits, &f->waits.any);
		break;
	case NEWS_PREEMPTED:
		count_preemption(f, event);
		break;
	case NEWS_SLEEPS:
		take_sleep(f, event);
		break;
	case NEWS_WOKEN:
		if (measured)
			count_waker(f, event, since_ns);
		break;
	case NEWS_NOTHING:
		break;
	}
}

void follower_lost(struct follower *f, int64_t from_ns, int64_t until_ns)
{
	waits_lost(&f->waits);
	cycles_lost(&f->cycles, &f->waits, from_ns, until_ns);
	broken_rules_lost(&f->rules);
	f->outside_call = false;
	f->own_since_ns = f->throttled_since_ns = 0;
	f->blind_until_ns = until_ns;
	if (!f->stops.since_ns)
		return;
	if (from_ns > f->stops.since_ns)
		f->observed_ns += from_ns - f->stops.since_ns;
	stops_begin(&f->stops, until_ns);
}

/* Returns the thread's CPU time since it was first seen: without switches, events do not show it. */
static int64_t ran_ns(const struct follower *f)
{
	int64_t cpu_ns, slices;

	return thread_run(f->thread.tid, &cpu_ns, &slices) ? cpu_ns - f->cpu_ns : 0;
}

bool follower_polls(const struct follower *f, int64_t now_ns)
{
	return !f->cycles.chosen && !f->cycles.site_count && now_ns - f->begun_ns > NS_PER_S &&
	       ran_ns(f) > (now_ns - f->begun_ns) / 2;
}

void follower_begin_stops(struct follower *f, int64_t now_ns)
{
	f->poller = true;
	stops_begin(&f->stops, now_ns);
}

void follower_learn(struct follower *f, int64_t now_ns)
{
	struct stop stop;

	cycles_learn(&f->cycles, &f->waits, false);
	if (f->poller && !f->cycles.chosen)
		end_cycle(f, now_ns);
	if (stops_settle(&f->stops, now_ns, false, &stop))
		take_stop(f, &stop);
}

void follower_end(struct follower *f, int64_t now_ns)
{
	int64_t end_ns = f->ended_ns ? f->ended_ns : now_ns;
	struct stop stop;

	if (stops_settle(&f->stops, end_ns, true, &stop))
		take_stop(f, &stop);
	if (f->stops.since_ns && end_ns > f->stops.since_ns)
		f->observed_ns += end_ns - f->stops.since_ns;
	f->stuck = cycles_end(&f->cycles, &f->waits, end_ns, f->ended_ns != 0);
	f->no_memory = f->cycles.no_memory;
	cycles_free(&f->cycles);
}

static bool on_same_grid(const struct follower *a, const struct follower *b)
{
	double period_ns = a->cycles.model.grid.period_ns, apart_ns;

	if (a->cycles.model.kind != CYCLE_PERIODIC || b->cycles.model.kind != CYCLE_PERIODIC ||
	    fabs(period_ns - b->cycles.model.grid.period_ns) > period_ns / 100)
		return false;
	apart_ns = fabs(fmod(a->cycles.point_ns - b->cycles.point_ns, period_ns));
	return fmin(apart_ns, period_ns - apart_ns) <= cycle_tolerance_ns(&a->cycles.model);
}

/* Threads that take turns share the points of one grid: each leaves out many, and together they have hardly
 * more than all. */
void followers_find_turns(struct follower *const *followers, int count)
{
	for (int i = 0; i < count; i++) {
		int64_t releases = followers[i]->activations + followers[i]->overruns, together = 0;
		bool each_leaves_out = true;
		int others = 0;

		for (int k = 0; k < count; k++) {
			const struct follower *f = followers[k];

			if (!f->activations || !on_same_grid(followers[i], f))
				continue;
			together += f->activations;
			others += k != i;
			each_leaves_out &= f->overruns * TURNS_PART > releases;
		}
		followers[i]->takes_turns = others && each_leaves_out && together * 2 <= releases * 3;
	}
}

static void write_others(const struct follower *f, const char *name, const struct other *others, int places,
			 const char *key, struct json *j)
{
	for (int i = 0; i < places && others[i].count; i++) {
		stream_result(j, name);
		json_str(j, "task", f->label);
		json_str(j, key, others[i].name);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "count", others[i].count);
		if (others[i].total_ns) {
			json_int(j, "total_ns", others[i].total_ns);
			json_int(j, "max_ns", others[i].max_ns);
		}
		stream_result_end(j);
	}
}

/* Above this share, no figure of the quantity can be a promise. Verdicts know the name of the mark. */
static void tell_unknown(const struct follower *f, struct json *j)
{
	int64_t unknown = f->unknown_execution;

	if (unknown)
		stream_mark(j,
			    unknown * UNKNOWN_PART > f->activations ? "activations-unknown"
								    : "switches-missing",
			    SEVERITY_DOUBTFUL, (int)f->series[EXECUTION].id,
			    "the kernel did not trace every switch in %lld of %lld activations of %s, so the "
			    "figures leave out the execution time of these",
			    (long long)unknown, (long long)f->activations, f->label);
}

/* Marks that several waits could begin the cycle, and how to say which. */
static void mark_unclear(const struct follower *f, struct json *j)
{
	const struct cycle_choice *choice = &f->cycles.choice;
	char room[CALL_NAME_MAX], list[400] = "";
	size_t len = 0;

	if (f->takes_turns)
		stream_mark(j, "cycle-unclear", SEVERITY_DOUBTFUL, (int)f->series[LATENCY].id,
			    "%s takes turns with other threads in one cycle, and the kernel's events do not "
			    "show how a cycle moves between them",
			    f->label);
	if (!f->cycles.chosen || !choice->unclear || f->takes_turns)
		return;
	if (f->cycles.model.hidden) {
		stream_mark(
			j, "cycle-unclear", SEVERITY_DOUBTFUL, (int)f->series[LATENCY].id,
			"%s waits in %s, which rounds times to whole milliseconds, so the releases of the "
			"thread are not certain",
			f->label, blocking_call_name(&f->cycles.model.call, room, sizeof(room)));
		return;
	}
	for (size_t i = 0; i < choice->count && len < sizeof(list) - 80; i++) {
		const struct cycle_candidate *candidate = &choice->candidates[i];
		int fd = blocking_call_fd(&candidate->call);
		double period_ns = candidate->kind == CYCLE_PERIODIC ? candidate->grid.period_ns
								     : candidate->interval_ns;

		if (candidate->count * CYCLE_RARE <= f->cycles.model.count)
			continue;
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", len ? ", " : "",
					blocking_call_name(&candidate->call, room, sizeof(room)));
		if (fd >= 0)
			len += (size_t)snprintf(list + len, sizeof(list) - len, ":%d", fd);
		len += (size_t)snprintf(list + len, sizeof(list) - len, " (about every %lld us, %zu times)",
					(long long)(period_ns / 1000), candidate->count);
	}
	stream_mark(j, "cycle-unclear", SEVERITY_DOUBTFUL, (int)f->series[LATENCY].id,
		    "several waits of %s could begin its cycle: %s; name the right one with --cycle "
		    "CALL[:FD]",
		    f->label, list);
}

/* What the engine itself did to the thread. */
static void mark_own(const struct follower *f, struct json *j)
{
	int64_t late_ns = f->series[LATENCY].total.sum_ns;

	if (f->own_ns * OWN_PART > late_ns)
		stream_mark(
			j, "delayed-by-rtgauge", SEVERITY_DOUBTFUL, (int)f->series[LATENCY].id,
			"rtgauge itself kept %s from running for %lld us, more than 1 %% of its latencies",
			f->label, (long long)(f->own_ns / 1000));
	if (f->no_memory)
		stream_mark(j, "cycle-unclear", SEVERITY_DOUBTFUL, (int)f->series[LATENCY].id,
			    "rtgauge had too little memory to follow the waits of %s", f->label);
}

static const char *kind_of(const struct follower *f)
{
	return kinds[f->poller ? CYCLE_POLLER : f->cycles.chosen ? f->cycles.model.kind : CYCLE_UNKNOWN];
}

/* The call that begins the cycle, or the one that it could be. */
static void write_call(const struct cycle_candidate *candidate, struct json *j)
{
	char room[CALL_NAME_MAX];

	if (candidate->call.number >= 0)
		json_str(j, "call", blocking_call_name(&candidate->call, room, sizeof(room)));
	if (blocking_call_fd(&candidate->call) >= 0)
		json_int(j, "fd", blocking_call_fd(&candidate->call));
	json_bool(j, "wall_clock", candidate->wall);
	if (candidate->kind == CYCLE_RELATIVE)
		json_int(j, "sleep_ns", (int64_t)candidate->sleep_ns);
}

static void write_candidates(const struct follower *f, struct json *j)
{
	const struct cycle_choice *choice = &f->cycles.choice;

	for (size_t i = 0; choice->unclear && i < choice->count; i++) {
		const struct cycle_candidate *candidate = &choice->candidates[i];
		double period_ns = candidate->kind == CYCLE_PERIODIC ? candidate->grid.period_ns
								     : candidate->interval_ns;

		stream_result(j, "wait");
		json_str(j, "task", f->label);
		json_int(j, "number", (int64_t)i + 1);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_str(j, "kind", kinds[candidate->kind]);
		write_call(candidate, j);
		json_int(j, "count", (int64_t)candidate->count);
		json_int(j, "period_ns", (int64_t)period_ns);
		json_int(j, "slept_ns", candidate->slept_ns);
		json_bool(j, "lock", candidate->lock);
		stream_result_end(j);
	}
}

/* Where the thread is now, if it is in a call. */
static void write_present(const struct follower *f, struct json *j)
{
	const struct wait *now = &f->waits.now;
	char room[CALL_NAME_MAX];

	json_bool(j, "stuck", f->stuck);
	if (f->stuck && f->waits.waiting && now->call.number >= 0)
		json_str(j, "stuck_in", blocking_call_name(&now->call, room, sizeof(room)));
	if (f->stuck)
		json_int(j, "stuck_since_ns",
			 f->cycles.active ? f->cycles.now.start_ns : (int64_t)f->cycles.seen_ns);
	if (f->ended_ns)
		json_int(j, "ended_ns", f->ended_ns);
}

/* The period of the grid; without a grid, the mean time from one start to the next. */
static int64_t period_ns(const struct follower *f)
{
	const struct moments *starts = &f->series[PERIOD].total;

	if (f->cycles.model.kind == CYCLE_PERIODIC || !starts->count)
		return (int64_t)cycles_period_ns(&f->cycles);
	return starts->sum_ns / starts->count;
}

static void write_thread(const struct follower *f, struct json *j)
{
	static const char *const policies[] = {"other", "fifo", "rr",	    "batch",
					       "iso",	"idle", "deadline", "ext"};
	int policy = f->thread.policy;

	stream_result(j, "thread");
	json_str(j, "task", f->label);
	json_close(j, '}');
	json_open(j, "values", '{');
	json_int(j, "tid", f->thread.tid);
	json_str(j, "policy", policy >= 0 && policy < 8 ? policies[policy] : "unknown");
	json_int(j, "priority", f->thread.priority);
	json_int(j, "definitions", CYCLES_DEFINITIONS);
	json_str(j, "kind", kind_of(f));
	if (f->cycles.chosen) {
		write_call(&f->cycles.model, j);
		json_int(j, "period_ns", period_ns(f));
	}
	if (f->poller) {
		json_bool(j, "interrupts_traced", f->phase->interrupts);
		json_int(j, "observed_ns", f->observed_ns);
		json_int(j, "unknown_stops", f->stops.unknown);
	}
	json_bool(j, "unclear", f->cycles.choice.unclear || f->takes_turns);
	json_int(j, "changes", f->cycles.changes);
	json_int(j, "activations", f->activations);
	json_int(j, "overruns", f->overruns);
	json_int(j, "unknown_releases", f->unknown_releases);
	json_int(j, "unknown_execution", f->unknown_execution);
	json_int(j, "judged_cycles", f->rules.cycles);
	if (f->rules.left_out)
		json_int(j, "broken_rules_left_out", f->rules.left_out);
	json_int(j, "other_returns", f->cycles.others);
	json_int(j, "lost_ends", f->lost_ends);
	json_int(j, "cut_latency_ns", f->cut_latency_ns);
	json_int(j, "cut_response_ns", f->cut_response_ns);
	write_present(f, j);
	json_int(j, "preemptions", f->preemptions);
	json_int(j, "preempted_by_rtgauge_ns", f->own_ns);
	json_int(j, "throttled", f->throttled);
	json_int(j, "throttled_ns", f->throttled_ns);
	json_int(j, "timer_slack_ns", f->place.slack_ns);
	json_int(j, "voluntary_switches", f->after.voluntary_switches - f->before.voluntary_switches);
	json_int(j, "involuntary_switches", f->after.involuntary_switches - f->before.involuntary_switches);
	json_int(j, "minor_faults", f->after.minor_faults - f->before.minor_faults);
	json_int(j, "major_faults", f->after.major_faults - f->before.major_faults);
	stream_result_end(j);
}

void follower_conclude(const struct follower *f, struct json *j)
{
	write_thread(f, j);
	write_candidates(f, j);
	write_others(f, "preempted-by", f->preempted_by, OTHERS_MAX, "by", j);
	write_others(f, "stopped-by", f->stopped_by, OTHERS_MAX, "by", j);
	write_others(f, "woken-by", f->woken_by, OTHERS_MAX, "by", j);
	write_others(f, "sleeps-in", f->sleeps_in, SLEEPS_MAX, "syscall", j);
	write_others(f, "blocked-in", f->blocked_in, SLEEPS_MAX, "syscall", j);
	write_others(f, "inversion", f->inversions, OTHERS_MAX, "by", j);
	write_others(f, "inversion-lent", f->inversions_lent, OTHERS_MAX, "by", j);
	broken_rules_write(&f->rules, f->label, f->phase->from_ns, j);
	tell_unknown(f, j);
	mark_unclear(f, j);
	mark_own(f, j);
}
