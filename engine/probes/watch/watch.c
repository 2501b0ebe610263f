// SPDX-License-Identifier: MIT
/*
 * watch: observes the threads of the user's program with the kernel's tracepoints for wake-ups and
 * switches. A thread is released when it is woken. Its latency ends when it runs, and its response when it
 * sleeps again.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/process.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/tracefs.h"
#include "base/verbs.h"
#include "harness/explain.h"
#include "harness/harness.h"
#include "probes/watch/activations.h"
#include "probes/watch/cost.h"
#include "probes/watch/sched_events.h"
#include "probes/watch/threads.h"

#define DRAIN_NS (NS_PER_S / 20)
#define OTHERS_MAX 12 /* most tasks that are named as preempting or waking a thread */
#define SLEEPS_MAX 8
#define UNKNOWN_PART 100
#define SCAN_NS NS_PER_S /* time between two searches for new threads */

enum metric { LATENCY, RESPONSE, EXECUTION, PERIOD, METRICS };

static const char *const metrics[METRICS] = {"latency", "response", "execution", "period"};

static struct {
	int64_t pid;
	const char *program, *threads, *instance;
} options;

static const struct option_entry table[] = {
	{.name = "pid",
	 .kind = OPTION_INT,
	 .value = &options.pid,
	 .min = 1,
	 .max = INT32_MAX,
	 .help = "process ID of the program to watch"},
	{.name = "program",
	 .kind = OPTION_TEXT,
	 .value = &options.program,
	 .help = "name of the program to watch, instead of --pid"},
	{.name = "threads",
	 .kind = OPTION_TEXT,
	 .value = &options.threads,
	 .help = "names of threads to watch, separated by commas; default: those with a real-time policy, else all"},
	{.name = "trace-instance",
	 .kind = OPTION_TEXT,
	 .value = &options.instance,
	 .help = "instance of tracefs in which the kernel records"},
	{.shared = harness_option_duration},
	{.shared = harness_option_warm_up},
	{.shared = harness_options_machine},
	{.shared = explain_options_table},
	{0},
};

/* A task that affected a thread: how often, and how long the thread slept because of it, in total and at
 * most. */
struct other {
	char name[32];
	int64_t count, total_ns, max_ns;
};

struct follower {
	struct watched_thread thread;
	char label[40];
	struct watch_track track;
	struct thread_counts before, after;
	struct other preempted_by[OTHERS_MAX], woken_by[OTHERS_MAX], sleeps_in[SLEEPS_MAX];
	struct other inversions[OTHERS_MAX],
		inversions_lent[OTHERS_MAX]; /* by locks that do not lend priority, and by locks that do */
	struct blocking_call call;	     /* the last call that it entered, and when */
	int64_t call_ns;
	bool outside_call;	 /* a call that it left by itself, not interrupted by a signal */
	int64_t asleep_since_ns; /* 0: unknown */
	int64_t inversion_max_ns, waited_max_ns;
	struct explained who; /* of the present activation */
	int64_t activations, preemptions;
	int64_t unknown[METRICS]; /* activations without this value, because a switch was not traced */
	int64_t latency_bound_max_ns;
	int cpu; /* the CPU on which the activation began */
	struct series series[METRICS];
};

struct state {
	struct follower *followers[WATCH_THREADS_MAX];
	struct series *series[WATCH_THREADS_MAX * METRICS];
	pid_t tids[WATCH_THREADS_MAX]; /* of the first followers, which existed at the beginning */
	int count, left_out;
	int64_t start_ns, measured_from_ns, end_ns, dropped;
	int64_t looked_ns; /* for threads that begin later */
	bool counted;	   /* the program's own counts were read when the measured phase began */
	struct process program;
	struct sched_events events;
	struct watch_cost cost;
};

/* Returns 0 if options.pid is set to the program with the given name. */
static int find_program(void)
{
	pid_t pid = 0;
	int found = threads_find_program(options.program, &pid);

	/* if only the rest is checked, a load will start the program later */
	options.pid = options.instance ? pid : getpid();
	if (found == 1 || !options.instance)
		return 0;
	if (!found)
		return error_line(STATUS_USAGE, "no-program",
				  "no program is named %.15s, as in /proc/PID/comm", options.program);
	return error_line(STATUS_USAGE, "no-program",
			  "%d programs are named %.15s: give the process ID of one with --pid", found,
			  options.program);
}

static int check(struct harness *h)
{
	struct state *state = h->state;
	int wrong;

	harness_options.policy = POLICY_OTHER; /* none of the engine's own threads is real-time */
	harness_options.warm_up_ns += WATCH_COST_NS;
	if (!options.pid && !options.program)
		return usage_error("--pid is missing; give the process ID of the program to watch");
	if (options.instance && !tracefs_is_name(options.instance))
		return usage_error("--trace-instance %.80s: give at most 64 letters, digits, - and _",
				   options.instance);
	wrong = options.program ? find_program() : 0;
	if (wrong)
		return wrong;
	if (!process_read((pid_t)options.pid, &state->program))
		return error_line(STATUS_USAGE, "no-program", "there is no process %lld",
				  (long long)options.pid);
	return 0;
}

/* Makes a name that is unique among the threads. */
static void name_thread(const struct state *state, struct follower *f, int number)
{
	snprintf(f->label, sizeof(f->label), "%s", f->thread.name);
	for (int i = 0; i < number; i++) {
		if (!strcmp(state->followers[i]->label, f->label))
			snprintf(f->label, sizeof(f->label), "%s-%d", f->thread.name, (int)f->thread.tid);
	}
}

static bool follow(struct state *state, const struct watched_thread *thread)
{
	struct follower *f = state->followers[state->count] = memory_get(sizeof(*f));

	if (!f)
		return false;
	f->thread = *thread;
	f->call.number = -1;
	f->track.tid = thread->tid;
	name_thread(state, f, state->count);
	for (int m = 0; m < METRICS; m++) {
		struct series *s = state->series[state->count * METRICS + m] = &f->series[m];

		s->id = (unsigned int)(state->count * METRICS + m);
		s->cpu = -1;
		s->metric = metrics[m];
		s->labels[0] = (struct label){"task", f->label};
	}
	state->count++;
	return true;
}

/* Sets the tasks whose waits for the lock of the program's memory map are recorded. */
static void explain_tasks(void)
{
	pid_t first, last;

	if (explain_options.instance && threads_range((pid_t)options.pid, &first, &last))
		explain_program(first, last);
}

static int prepare_probe(struct harness *h)
{
	struct state *state = h->state;
	struct watched_thread threads[WATCH_THREADS_MAX];
	int found = threads_find((pid_t)options.pid, options.threads, threads, &state->left_out);

	if (found <= 0)
		return error_line(STATUS_USAGE, "no-program",
				  found ? "the program %lld has ended"
					: "no thread of the program %lld has such a name",
				  (long long)options.pid);
	while (state->count < found) {
		if (!follow(state, &threads[state->count]))
			return harness_no_memory();
	}
	h->series = state->series;
	h->series_count = (unsigned int)state->count * METRICS;
	explain_tasks();
	return 0;
}

static int begin_events(struct harness *h)
{
	struct state *state = h->state;

	if (!options.instance)
		return 0; /* only the rest is checked */
	for (int i = 0; i < state->count; i++)
		state->tids[i] = state->followers[i]->thread.tid;
	return sched_events_open(&state->events, options.instance, state->tids, state->count);
}

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

/* The thread slept until another thread woke it. */
static void explain_wait(struct follower *f, const struct sched_event *event, int64_t slept_ns, bool inverted)
{
	int64_t *max_ns = inverted ? &f->inversion_max_ns : &f->waited_max_ns;
	const struct explained who = {.cpu = event->cpu, .tid = f->thread.tid};

	if (slept_ns <= *max_ns)
		return;
	*max_ns = slept_ns;
	explain_sleep(&f->series[RESPONSE], f->asleep_since_ns, slept_ns, inverted, &who);
}

static bool is_inverted(const struct follower *f, const struct sched_event *event)
{
	int priority, policy = thread_priority(event->current, &priority);

	if (policy < 0 || policy == SCHED_DEADLINE)
		return false;
	return f->thread.policy == SCHED_DEADLINE || priority < f->thread.priority;
}

static void count_waker(struct follower *f, const struct sched_event *event)
{
	int64_t slept_ns = f->asleep_since_ns ? event->time_ns - f->asleep_since_ns : 0;
	enum lock_kind lock = blocking_call_lock(&f->call);
	char path[64], name[32] = "a task that has ended", room[32];
	bool inverted;
	FILE *file;

	if (f->asleep_since_ns && f->call.number >= 0)
		count_other(f->sleeps_in, SLEEPS_MAX, blocking_call_name(f->call.number, room, sizeof(room)),
			    slept_ns);
	if (event->hardirq || event->softirq) {
		count_other(f->woken_by, OTHERS_MAX, event->hardirq ? "interrupt" : "softirq", 0);
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)event->current);
	file = fopen(path, "re");
	if (file && fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
	count_other(f->woken_by, OTHERS_MAX, name, 0);
	if (!slept_ns)
		return;
	inverted = lock != NO_LOCK && is_inverted(f, event);
	if (!blocking_call_is_pause(&f->call)) /* a call that another thread can end only with a signal */
		explain_wait(f, event, slept_ns, inverted);
	if (inverted)
		count_other(lock == LOCK_INHERITS ? f->inversions_lent : f->inversions, OTHERS_MAX, name,
			    slept_ns);
}

/* The thread is stopped, or sleeps uninterruptibly; in a system call, if it entered one in this
   activation. */
static void note_held(struct follower *f, const struct sched_event *event)
{
	bool in_call = !f->outside_call && f->call.number >= 0 && f->call_ns >= f->track.now.release_ns;
	struct held *held;
	char room[sizeof(held->call)];

	f->who.held_count += f->who.held_count < HELD_MAX; /* if there are more calls, the last one is kept */
	held = &f->who.held[f->who.held_count - 1];
	held->since_ns = event->time_ns;
	snprintf(held->call, sizeof(held->call), "%s",
		 in_call ? blocking_call_name(f->call.number, room, sizeof(room)) : "");
}

/* The thread is no longer held. */
static void count_held(struct follower *f, const struct sched_event *event)
{
	const struct held *held = f->who.held_count ? &f->who.held[f->who.held_count - 1] : NULL;

	if (held && held->call[0] && held->since_ns == f->asleep_since_ns)
		count_other(f->sleeps_in, SLEEPS_MAX, held->call, event->time_ns - f->asleep_since_ns);
}

static bool is_measured(const struct state *state, int64_t time_ns)
{
	return time_ns >= state->measured_from_ns && time_ns < state->end_ns;
}

static void feed_period(struct follower *f, const struct watch_activation *a, struct json *j)
{
	if (a->period_ns)
		series_feed_timed(&f->series[PERIOD], a->release_ns, a->period_ns, j);
}

static void feed(const struct state *state, struct follower *f, const struct watch_activation *a,
		 struct json *j)
{
	f->cpu = a->cpu;
	if (!a->done) {
		series_feed_timed(&f->series[LATENCY], a->release_ns, a->start_ns - a->release_ns, j);
		feed_period(f, a, j);
		return;
	}
	if (!a->begun)
		feed_period(f, a, j);
	series_feed_timed(&f->series[RESPONSE], a->release_ns, a->end_ns - a->release_ns, j);
	if (a->executed)
		series_feed_timed(&f->series[EXECUTION], a->release_ns, a->execution_ns, j);
	if (!is_measured(state, a->release_ns))
		return;
	f->activations++;
	f->unknown[LATENCY] += !a->begun;
	f->unknown[EXECUTION] += !a->executed;
	if (!a->begun && a->latency_bound_ns > f->latency_bound_max_ns)
		f->latency_bound_max_ns = a->latency_bound_ns;
}

/* A thread that sleeps outside a system call is held, because the freezer of cgroup v2 stops it there. If
 * it was frozen during a sleep, its call was interrupted, and its activation has ended. */
static struct sched_event with_freezer(const struct follower *f, const struct sched_event *event)
{
	struct sched_event known = *event;

	known.held |= event->kind == SCHED_SWITCH && event->from == f->track.tid && event->sleeps &&
		      f->outside_call;
	return known;
}

static void take_call(struct follower *f, const struct sched_event *event)
{
	watch_track_runs(&f->track, event);
	f->outside_call = event->kind == SCHED_RETURN && !event->restarts;
	if (event->kind == SCHED_RETURN)
		return;
	f->call = event->call;
	f->call_ns = event->time_ns;
}

static void take_event(void *user, const struct sched_event *event)
{
	struct harness *h = user;
	const struct state *state = h->state;
	struct sched_event known;
	struct watch_activation activation;
	bool preempted, measured = is_measured(state, event->time_ns);

	if (event->time_ns < state->start_ns)
		return;
	for (int i = 0; i < state->count; i++) {
		struct follower *f = state->followers[i];
		int64_t unended = f->track.unended;
		enum watch_state before = f->track.state;
		bool its = event->to == f->track.tid ||
			   (event->kind == SCHED_SWITCH && event->from == f->track.tid);

		if (!its)
			continue;
		if (event->kind == SCHED_SYSCALL || event->kind == SCHED_RETURN) {
			take_call(f, event);
			continue;
		}
		if (event->kind == SCHED_WAKING && measured && before == WATCH_ASLEEP)
			count_waker(f, event);
		if (event->kind == SCHED_WAKING && measured && before == WATCH_HELD)
			count_held(f, event);
		known = with_freezer(f, event);
		if (watch_track_event(&f->track, &known, &activation, &preempted))
			feed(state, f, &activation, &h->j);
		if (measured)
			f->unknown[RESPONSE] += f->track.unended - unended;
		if (f->track.state == WATCH_HELD && event->from == f->track.tid)
			note_held(f, event);
		else if (f->track.state == WATCH_WOKEN && before != WATCH_WOKEN)
			f->who.held_count = 0;
		f->asleep_since_ns = f->track.state != WATCH_ASLEEP && f->track.state != WATCH_HELD ? 0
				     : event->from == f->track.tid ? event->time_ns
								   : f->asleep_since_ns;
		if (preempted && measured) {
			f->preemptions++;
			count_other(f->preempted_by, OTHERS_MAX, event->to_name, 0);
		}
	}
}

/* If the kernel does not report system calls: reads the calls in which the threads are now. */
static void count_sleeps(const struct state *state)
{
	char room[32];

	for (int i = 0; i < state->count && !sched_events_have_calls(&state->events); i++) {
		long number = thread_syscall(state->followers[i]->thread.tid);

		if (number >= 0)
			count_other(state->followers[i]->sleeps_in, SLEEPS_MAX,
				    blocking_call_name(number, room, sizeof(room)), 0);
	}
}

static void count_all(const struct state *state, bool at_end)
{
	for (int i = 0; i < state->count; i++) {
		struct follower *f = state->followers[i];

		thread_count(f->thread.tid, at_end ? &f->after : &f->before);
		if (!at_end)
			f->after = f->before;
	}
}

/* Reads the program's own counts when the measured phase begins, and repeatedly until it ends. */
static void count_in_phase(struct state *state, int64_t now_ns)
{
	if (now_ns < state->measured_from_ns)
		return;
	count_all(state, state->counted);
	state->counted = true;
	count_sleeps(state);
}

static int64_t phase_ns(void)
{
	return harness_options.duration_ns ? harness_options.duration_ns : INT64_MAX;
}

static bool is_followed(const struct state *state, pid_t tid)
{
	for (int i = 0; i < state->count; i++) {
		if (state->followers[i]->thread.tid == tid)
			return true;
	}
	return false;
}

/* Follows threads that began, or became real-time, since the last look. */
static void find_later(struct harness *h, int64_t now_ns)
{
	struct watched_thread threads[WATCH_THREADS_MAX];
	struct state *state = h->state;
	int found, unused;

	if (now_ns - state->looked_ns < SCAN_NS)
		return;
	state->looked_ns = now_ns;
	explain_tasks();
	found = threads_find((pid_t)options.pid, options.threads, threads, &unused);
	for (int i = 0; i < found; i++) {
		if (is_followed(state, threads[i].tid))
			continue;
		if (state->count == WATCH_THREADS_MAX || !follow(state, &threads[i])) {
			state->left_out++;
			continue;
		}
		sched_events_add(&state->events, &threads[i].tid, 1);
		thread_count(threads[i].tid, &state->followers[state->count - 1]->before);
		state->followers[state->count - 1]->after = state->followers[state->count - 1]->before;
		for (int m = 0; m < METRICS; m++) {
			struct series *s = state->series[(state->count - 1) * METRICS + m];

			series_timed(s, state->start_ns, harness_options.warm_up_ns, phase_ns());
			harness_add_series(h, s);
		}
	}
}

static bool drain(struct harness *h, struct json *j)
{
	struct state *state = h->state;
	bool goes_on = !atomic_load(&harness_shared.stop), lost = false;
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	(void)j;
	sched_events_take(&state->events, take_event, h, !goes_on, &lost);
	state->dropped += lost;
	if (goes_on && watch_cost_turn(&state->cost, now_ns))
		lost = true;
	if (lost) {
		for (int i = 0; i < state->count; i++) {
			watch_track_lost(&state->followers[i]->track);
			state->followers[i]->outside_call = false;
		}
	}
	if (goes_on && state->left_out == 0)
		find_later(h, now_ns);
	for (unsigned int i = 0; i < h->series_count; i++)
		state->series[i]->reached_ns = now_ns;
	if (goes_on)
		count_in_phase(state, now_ns);
	if (goes_on && now_ns >= state->end_ns)
		harness_end_by(h, "duration");
	else if (goes_on && !process_lives((pid_t)options.pid, state->program.start))
		harness_end_by(h, "program-ended");
	return goes_on;
}

static int run(struct harness *h)
{
	struct state *state = h->state;
	int64_t measured_ns = phase_ns();

	if (!options.instance)
		return usage_error("--trace-instance is missing");
	state->start_ns = clock_now_ns(CLOCK_MONOTONIC);
	state->measured_from_ns = state->start_ns + harness_options.warm_up_ns;
	state->end_ns = measured_ns == INT64_MAX ? INT64_MAX : state->measured_from_ns + measured_ns;
	for (unsigned int i = 0; i < h->series_count; i++)
		series_timed(state->series[i], state->start_ns, harness_options.warm_up_ns, measured_ns);
	watch_cost_begin(&state->cost, &state->events, state->start_ns, state->tids, state->count);
	harness_go(h);
	harness_drain(h, drain, DRAIN_NS);
	sched_events_close(&state->events);
	return harness_finish(h, "duration");
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
static void tell_unknown_of(const struct follower *f, enum metric metric, struct json *j)
{
	static const char *const missing[METRICS] = {
		[LATENCY] = "began to run", [RESPONSE] = "ended", [EXECUTION] = "had the CPU"};
	int64_t unknown = f->unknown[metric], of = f->activations + f->unknown[RESPONSE];
	bool many = unknown * UNKNOWN_PART > of;
	char bound[64] = "";

	if (!unknown)
		return;
	if (metric == LATENCY)
		snprintf(bound, sizeof(bound), "; it was at most %lld us",
			 (long long)f->latency_bound_max_ns / 1000 + 1);
	stream_mark(
		j, many ? "activations-unknown" : "switches-missing", SEVERITY_DOUBTFUL,
		(int)f->series[metric].id,
		"for %lld of %lld activations of %s the kernel did not trace when they %s: their %s is in no figure%s",
		(long long)unknown, (long long)of, f->label, missing[metric], metrics[metric], bound);
}

static void tell_unknown(const struct state *state, struct json *j)
{
	for (int i = 0; i < state->count; i++) {
		for (int m = 0; m < PERIOD; m++)
			tell_unknown_of(state->followers[i], m, j);
	}
}

static void conclude(struct harness *h, struct json *j)
{
	const struct state *state = h->state;
	static const char *const policies[] = {"other", "fifo", "rr",	    "batch",
					       "iso",	"idle", "deadline", "ext"};

	for (int i = 0; i < state->count; i++) {
		const struct follower *f = state->followers[i];
		int policy = f->thread.policy;

		stream_result(j, "thread");
		json_str(j, "task", f->label);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "tid", f->thread.tid);
		json_str(j, "policy", policy >= 0 && policy < 8 ? policies[policy] : "unknown");
		json_int(j, "priority", f->thread.priority);
		json_int(j, "activations", f->activations);
		json_int(j, "unknown", f->unknown[LATENCY]);
		json_int(j, "unknown_response", f->unknown[RESPONSE]);
		json_int(j, "unknown_execution", f->unknown[EXECUTION]);
		if (f->unknown[LATENCY])
			json_int(j, "unknown_latency_max_ns", f->latency_bound_max_ns);
		json_int(j, "preemptions", f->preemptions);
		json_int(j, "voluntary_switches", f->after.voluntary_switches - f->before.voluntary_switches);
		json_int(j, "involuntary_switches",
			 f->after.involuntary_switches - f->before.involuntary_switches);
		json_int(j, "minor_faults", f->after.minor_faults - f->before.minor_faults);
		json_int(j, "major_faults", f->after.major_faults - f->before.major_faults);
		stream_result_end(j);
		write_others(f, "preempted-by", f->preempted_by, OTHERS_MAX, "by", j);
		write_others(f, "woken-by", f->woken_by, OTHERS_MAX, "by", j);
		write_others(f, "sleeps-in", f->sleeps_in, SLEEPS_MAX, "syscall", j);
		write_others(f, "inversion", f->inversions, OTHERS_MAX, "by", j);
		write_others(f, "inversion-lent", f->inversions_lent, OTHERS_MAX, "by", j);
	}
	watch_cost_write(&state->cost, j);
	tell_unknown(state, j);
	if (state->dropped)
		stream_mark(
			j, "trace-dropped", SEVERITY_DOUBTFUL, -1,
			"the kernel dropped events %lld time(s); activations around these times are in no figure",
			(long long)state->dropped);
	if (state->left_out)
		stream_mark(
			j, "threads-left-out", SEVERITY_NOTE, -1,
			"%d threads are left out, because not all can be watched at once; name the threads of interest",
			state->left_out);
}

static bool explained(const struct harness *h, const struct series *s, struct explained *who)
{
	const struct state *state = h->state;
	const struct follower *f = state->followers[s->id / METRICS];

	if (s->id % METRICS != LATENCY && s->id % METRICS != RESPONSE)
		return false;
	*who = f->who;
	who->cpu = f->cpu;
	who->tid = f->thread.tid;
	return true;
}

static int verb_watch(int argc, char **argv)
{
	static struct harness harness = {
		.table = table,
		.state_size = sizeof(struct state),
		.check = check,
		.prepare = prepare_probe,
		.started = begin_events,
		.run = run,
		.conclude = conclude,
		.explained = explained,
	};

	return harness_run(&harness, argc, argv);
}

PROBE("watch", verb_watch,
      "the threads of a program: wake-ups, latency, response, execution, what preempts them")
