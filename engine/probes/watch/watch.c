// SPDX-License-Identifier: MIT
/*
 * watch: observes the threads of the user's program with the kernel's tracepoints for system calls, timers,
 * wake-ups and switches. docs/probes/watch.md defines what a release, a start and an end are.
 */
#include <elf.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/process.h"
#include "agent/threads.h"
#include "base/clock.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/pid_namespace.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/tracefs.h"
#include "base/verbs.h"
#include "harness/cpu_counters.h"
#include "harness/explain.h"
#include "harness/harness.h"
#include "probes/watch/cost.h"
#include "probes/watch/follower.h"
#include "probes/watch/sched_events.h"
#include "probes/watch/user_stacks.h"

#define DRAIN_NS (NS_PER_S / 20)
#define COUNTS_PER_LOOK 20 /* how often the program's own counts are read between two looks */
#define SETTLES_NS (2 * NS_PER_S)
#define HURRIED_PART 8 /* of --drain-ns, while many latencies come at once */
#define SLOTS 128      /* of the table of threads; more than twice WATCH_THREADS_MAX */
#define CHANGES_MAX 32

static struct {
	int64_t pid;
	const char *program, *threads, *instance, *cycle, *parts;
	struct point_options points;
	int64_t period_ns, look_ns, drain_ns, window_ns;
	bool keep_end, stacks;
} options = {.points = {.budget_ns = 5000}, .look_ns = NS_PER_S, .window_ns = SERIES_WINDOW_NS};

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
	 .help = "names of the threads to watch, separated by commas; default: real-time threads, or all "
		 "threads if none is real-time"},
	{.name = "cycle",
	 .kind = OPTION_TEXT,
	 .value = &options.cycle,
	 .help = "system call that begins the cycle, CALL or CALL:FD; default: the engine finds it itself"},
	{.name = "period-ns",
	 .kind = OPTION_INT,
	 .value = &options.period_ns,
	 .min = 0,
	 .max = INT64_MAX / 4,
	 .help = "period that the loop should have, in ns; 0: unknown"},
	{.name = "points",
	 .kind = OPTION_TEXT,
	 .value = &options.points.list,
	 .help = "events at instructions of the program, in the order of its cycle, separated by commas"},
	{.name = "point-cost",
	 .kind = OPTION_TEXT,
	 .value = &options.points.cost,
	 .help = "event at the place that point-place prints, at which the cost of a point is measured"},
	{.name = "point-budget-ns",
	 .kind = OPTION_INT,
	 .value = &options.points.budget_ns,
	 .min = 0,
	 .max = NS_PER_S,
	 .help = "what a point may cost at most, in ns"},
	{.name = "parts",
	 .kind = OPTION_TEXT,
	 .value = &options.parts,
	 .help = "names of the parts of the program from each of the points to the next, separated by commas"},
	{.name = "trace-instance",
	 .kind = OPTION_TEXT,
	 .value = &options.instance,
	 .help = "instance of tracefs that records the kernel's events"},
	{.name = "look-ns",
	 .kind = OPTION_INT,
	 .value = &options.look_ns,
	 .min = NS_PER_S,
	 .max = 60 * NS_PER_S,
	 .help = "time between two searches for new threads and for what changed, in ns"},
	{.name = "drain-ns",
	 .kind = OPTION_INT,
	 .value = &options.drain_ns,
	 .min = 0,
	 .max = NS_PER_S,
	 .help = "time between two readings of the kernel's events in the measured phase, in ns; 0: the "
		 "default"},
	{.name = "window-ns",
	 .kind = OPTION_INT,
	 .value = &options.window_ns,
	 .min = NS_PER_S / 10,
	 .max = 3600 * NS_PER_S,
	 .help = "length of the windows, in ns"},
	{.name = "keep-end",
	 .kind = OPTION_FLAG,
	 .value = &options.keep_end,
	 .help = "keep the kernel's events before the end of the program"},
	{.name = "stacks",
	 .kind = OPTION_FLAG,
	 .value = &options.stacks,
	 .help = "keep the stacks of threads that break a rule also at the first time"},
	{.shared = harness_option_duration},
	{.shared = harness_option_warm_up},
	{.shared = harness_options_machine},
	{.shared = explain_options_table},
	{0},
};

/* What happened to a thread while it was watched. */
struct change {
	pid_t tid;
	int64_t time_ns;
	const char *what;
	char from[PLACE_TEXT_MAX], to[PLACE_TEXT_MAX];
};

#define PART_NAME_MAX 24

/* The part of the program from one point to the next. */
struct part {
	struct series series;
	char name[PART_NAME_MAX];
	int64_t begun; /* in the measured phase; those that did not end at the next point have no time */
};

struct state {
	struct part parts[EVENT_POINTS_MAX - 1];
	int part_count;
	struct follower *followers[WATCH_THREADS_MAX];
	short slots[SLOTS]; /* index of a follower + 1, by its number; 0: empty */
	struct series *series[EVENT_POINTS_MAX - 1 + WATCH_THREADS_MAX * METRICS];
	/* of the series; NULL: a part's */
	struct follower *owners[EVENT_POINTS_MAX - 1 + WATCH_THREADS_MAX * METRICS];
	pid_t tids[WATCH_THREADS_MAX]; /* of the first followers, which existed at the beginning */
	pid_t first_task, last_task;   /* of which explaining records the calls; 0: none yet */
	int count, first_count, left_out;
	struct cycle_wish wish;
	struct phase phase;
	int64_t start_ns, dropped, taken_ns;
	int64_t looked_ns;		  /* for threads that begin later */
	int64_t counted_ns;		  /* the program's own counts were read for the last time */
	int64_t clock_set_ns, clock_sets; /* by how much the wall clock was set at most, and how often */
	int64_t signal, signal_ns;	  /* the last one that ended the program */
	int64_t rttime_us;		  /* the program's limit of real-time CPU time; -1: none */
	char other[TRACE_NAME_MAX];	  /* another measurement's instance of tracefs; empty: none */
	bool native;			  /* its system calls have this engine's numbers */
	bool counted;	       /* the program's own counts were read when the measured phase began */
	bool ended;	       /* the followers have ended */
	bool interrupts_tried; /* there was a poller, so the kernel was asked to record interrupts */
	int64_t begun;	       /* threads that the watched ones began in the measured phase */
	struct change changes[CHANGES_MAX];
	int change_count;
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
				  "did not find a program named %.80s; give its name as in /proc/PID/comm",
				  options.program);
	return error_line(STATUS_USAGE, "no-program",
			  "%d programs are named %.80s: give the process ID of one with --pid", found,
			  options.program);
}

/* Parses CALL or CALL:FD. */
static int parse_cycle(struct cycle_wish *wish)
{
	char name[CALL_NAME_MAX], *end;
	size_t len = options.cycle ? strcspn(options.cycle, ":") : 0;
	long fd = -1;

	*wish = (struct cycle_wish){.call = -1, .fd = -1, .period_ns = options.period_ns};
	if (!options.cycle)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(len < sizeof(name) ? len : sizeof(name) - 1),
		 options.cycle);
	wish->call = blocking_call_number(name);
	if (wish->call < 0)
		return usage_error("--cycle %.80s: give a system call in which the thread waits, such as "
				   "clock_nanosleep, epoll_wait or read:5",
				   options.cycle);
	if (options.cycle[len]) {
		fd = strtol(options.cycle + len + 1, &end, 10);
		if (end == options.cycle + len + 1 || *end || fd < 0 || fd > INT32_MAX)
			return usage_error("--cycle %.80s: give a file descriptor after the colon",
					   options.cycle);
	}
	wish->fd = (int)fd;
	return 0;
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
	wrong = parse_cycle(&state->wish);
	if (!wrong && !pids_are_the_kernels())
		wrong = error_line(STATUS_CANNOT_MEASURE, "pid-namespace", "%s", PIDS_ARE_OTHERS);
	if (!wrong && options.program)
		wrong = find_program();
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

static struct follower *find_follower(const struct state *state, pid_t tid)
{
	for (unsigned int slot = (unsigned int)tid % SLOTS; state->slots[slot]; slot = (slot + 1) % SLOTS) {
		struct follower *f = state->followers[state->slots[slot] - 1];

		if (f->thread.tid == tid)
			return f;
	}
	return NULL;
}

static void add_series(struct state *state, struct series *s, struct follower *f, unsigned int number)
{
	s->id = number;
	s->window_ns = options.window_ns;
	state->series[number] = s;
	state->owners[number] = f;
}

/* Returns NULL if there is no memory. */
static struct follower *follow(struct state *state, const struct watched_thread *thread, bool has_calls,
			       int64_t now_ns)
{
	struct follower *f = state->followers[state->count] = memory_get(sizeof(*f));
	unsigned int slot = (unsigned int)thread->tid % SLOTS;

	if (!f)
		return NULL;
	f->thread = *thread;
	name_thread(state, f, state->count);
	follower_begin(f, &state->phase, &state->wish, has_calls, now_ns);
	thread_place(thread->tid, &f->place);
	if (options.instance && state->native)
		f->rules.stacks = user_stacks_open(thread->tid, options.stacks);
	while (state->slots[slot])
		slot = (slot + 1) % SLOTS;
	state->slots[slot] = (short)++state->count;
	return f;
}

/* Sets the tasks of which explaining records calls, page faults and waits for the lock of the memory map. If
 * tasks begin, more may follow, so the range then has room for them: some kernels wait for all CPUs at each
 * of some 200 filters that change. */
static void explain_tasks(struct state *state)
{
	pid_t first, last;

	if (!explain_options.instance || !threads_range((pid_t)options.pid, &first, &last))
		return;
	if (state->last_task && first >= state->first_task && last <= state->last_task)
		return;
	state->first_task = first;
	state->last_task = last + (state->last_task ? THREADS_LATER : 0);
	sched_events_program(&state->events, state->first_task, state->last_task);
	explain_program(state->first_task, state->last_task);
}

/* Moves the engine to CPUs that no watched thread may use, if there are any. */
static void leave_their_cpus(const struct state *state)
{
	cpu_set_t others, theirs;

	if (sched_getaffinity(0, sizeof(others), &others))
		return;
	for (int i = 0; i < state->count; i++) {
		if (sched_getaffinity(state->followers[i]->thread.tid, sizeof(theirs), &theirs))
			continue;
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
			if (CPU_ISSET(cpu, &theirs))
				CPU_CLR(cpu, &others);
		}
	}
	if (CPU_COUNT(&others))
		sched_setaffinity(0, sizeof(others), &others);
}

static int64_t read_rttime_us(pid_t pid)
{
	struct rlimit limit;

	if (prlimit(pid, RLIMIT_RTTIME, NULL, &limit) || limit.rlim_max == RLIM_INFINITY)
		return -1;
	return (int64_t)limit.rlim_max;
}

static void add_parts(struct harness *h)
{
	struct state *state = h->state;

	for (const char *at = options.parts ? options.parts : "";
	     *at && state->part_count < EVENT_POINTS_MAX - 1;) {
		struct part *part = &state->parts[state->part_count++];
		int len = (int)strcspn(at, ",");

		snprintf(part->name, sizeof(part->name), "%.*s", len, at);
		part->series.cpu = -1;
		part->series.metric = "part";
		part->series.labels[0] = (struct label){"part", part->name};
		add_series(state, &part->series, NULL, h->series_count++);
		at += len + (at[len] == ',');
	}
}

/* A 32-bit program on a 64-bit kernel has other numbers of system calls. */
static enum call_table table_of(pid_t pid)
{
	unsigned char head[5] = {0};
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	file = fopen(path, "re");
	if (file) {
		if (fread(head, 1, sizeof(head), file) != sizeof(head))
			head[4] = 0;
		fclose(file);
	}
	return head[4] == ELFCLASS32 && sizeof(long) == 8 ? CALLS_32_BIT : CALLS_NATIVE;
}

static int prepare_probe(struct harness *h)
{
	struct state *state = h->state;
	struct watched_thread threads[WATCH_THREADS_MAX];
	int found = threads_find((pid_t)options.pid, options.threads, threads, &state->left_out);

	if (found <= 0)
		return error_line(STATUS_USAGE, "no-program",
				  found ? "the program with process ID %lld has ended"
					: "the program with process ID %lld does not have a thread of this "
					  "name",
				  (long long)options.pid);
	state->native = table_of((pid_t)options.pid) == CALLS_NATIVE;
	while (state->count < found) {
		struct follower *f = follow(state, &threads[state->count], true, 0);

		if (!f)
			return harness_no_memory();
		for (int m = 0; m < GAP; m++)
			add_series(state, &f->series[m], f, h->series_count++);
	}
	add_parts(h);
	h->series = state->series;
	state->first_count = state->count;
	leave_their_cpus(state);
	state->rttime_us = read_rttime_us((pid_t)options.pid);
	explain_tasks(state);
	return 0;
}

static bool has_event(void *user, const char *name)
{
	return sched_events_has(user, name);
}

static void read_events(void *user)
{
	sched_events_read(user);
}

/* An event that both watching and explaining need is recorded once, if the rings can have all of them. */
static void share_rings(struct state *state)
{
	struct sched_events *events = &state->events;

	if (!explain_can_share() || !sched_events_can_have_all(events) || !state->last_task ||
	    !sched_events_have_all(events, (size_t)explain_options.buffer_kb * 1024, state->first_task,
				   state->last_task))
		return;
	explain_share(&(struct explain_rings){.name = options.instance,
					      .instance = events->reader.instance,
					      .stores = events->reader.stores,
					      .count = events->reader.ring_count,
					      .has = has_event,
					      .read = read_events,
					      .user = events});
}

static int begin_events(struct harness *h)
{
	struct state *state = h->state;
	int failed;

	if (!options.instance)
		return 0; /* only the rest is checked */
	for (int i = 0; i < state->count; i++)
		state->tids[i] = state->followers[i]->thread.tid;
	failed = sched_events_open(&state->events, options.instance, table_of((pid_t)options.pid),
				   &options.points, state->tids, state->count);
	if (!failed)
		share_rings(state);
	return failed;
}

static void lose(struct state *state, int64_t from_ns, int64_t until_ns)
{
	for (int i = 0; i < state->count; i++) {
		follower_lost(state->followers[i], from_ns, until_ns);
		state->followers[i]->point_ns = 0;
	}
}

/* Returns whether a signal without a handler ends the program (signal(7)). */
static bool ends_program(int number)
{
	static const int others[] = {SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (number == others[i])
			return false;
	}
	return true;
}

/* A watched thread has begun another one, which is followed from the next look in /proc on, if it lives so
 * long. */
static void note_begun(struct state *state, const struct sched_event *event)
{
	if (event->time_ns - state->looked_ns >= NS_PER_S)
		state->looked_ns = 0; /* this is the time for a look */
	state->begun += event->time_ns >= state->phase.from_ns && event->time_ns < state->phase.until_ns;
}

/* A part ends if the thread reaches the next point. If it reaches another one, the part has no time. A part
 * that begins before the measured phase does not count in it. */
static void take_point(struct state *state, struct follower *f, const struct sched_event *event)
{
	int point = (int)event->result;
	struct part *ended = point ? &state->parts[point - 1] : NULL;

	if (ended && point <= state->part_count && f->point_ns && f->point == point - 1 &&
	    (f->point_ns >= state->phase.from_ns || event->time_ns < state->phase.from_ns))
		series_feed_timed(&ended->series, event->time_ns, event->time_ns - f->point_ns,
				  state->phase.j);
	f->point = point;
	f->point_ns = event->time_ns;
	if (point < state->part_count && event->time_ns >= state->phase.from_ns &&
	    event->time_ns < state->phase.until_ns)
		state->parts[point].begun++;
}

static void take_event(void *user, const struct sched_event *event)
{
	struct harness *h = user;
	struct state *state = h->state;
	struct follower *f;

	if (event->time_ns < state->start_ns)
		return;
	if (event->kind == SCHED_LOST) {
		state->dropped += event->expiry_ns >= state->phase.from_ns;
		lose(state, event->time_ns, event->expiry_ns);
		return;
	}
	/* the filter may let other programs' threads through */
	if ((event->kind == SCHED_SIGNAL || event->kind == SCHED_FORK) &&
	    !find_follower(state, event->current))
		return;
	if (event->kind == SCHED_SIGNAL && !ends_program((int)event->result))
		return;
	if (event->kind == SCHED_SIGNAL) {
		state->signal = event->result;
		state->signal_ns = event->time_ns;
		return;
	}
	if (event->kind == SCHED_FORK) {
		note_begun(state, event);
		return;
	}
	f = find_follower(state, event->to);
	if (f && event->kind == SCHED_POINT)
		take_point(state, f, event);
	else if (f)
		follower_take(f, event, &state->events.offsets);
	f = event->kind == SCHED_SWITCH ? find_follower(state, event->from) : NULL;
	if (f)
		follower_take(f, event, &state->events.offsets);
}

static void count_all(const struct state *state, bool begun, int64_t now_ns)
{
	for (int i = 0; i < state->count; i++) {
		struct follower *f = state->followers[i];

		follower_count(f, now_ns);
		if (!begun)
			f->before = f->after;
	}
}

/* Reads the program's own counts when the measured phase begins, and repeatedly until it ends. */
static void count_in_phase(struct state *state, int64_t now_ns)
{
	if (now_ns < state->phase.from_ns ||
	    (state->counted && now_ns - state->counted_ns < options.look_ns / COUNTS_PER_LOOK))
		return;
	count_all(state, state->counted, now_ns);
	state->counted = true;
	state->counted_ns = now_ns;
}

static int64_t phase_ns(void)
{
	return harness_options.duration_ns ? harness_options.duration_ns : INT64_MAX;
}

static void add_later(struct harness *h, struct series *s, struct follower *f)
{
	struct state *state = h->state;

	series_timed(s, state->start_ns, harness_options.warm_up_ns, phase_ns());
	add_series(state, s, f, h->series_count);
	harness_add_series(h, s);
}

/* Follows threads that began, or became real-time, since the last look. */
static void find_later(struct harness *h, int64_t now_ns)
{
	struct watched_thread threads[WATCH_THREADS_MAX];
	struct state *state = h->state;
	int found, unused;

	explain_tasks(state);
	found = threads_find((pid_t)options.pid, options.threads, threads, &unused);
	for (int i = 0; i < found; i++) {
		struct follower *f;

		if (find_follower(state, threads[i].tid))
			continue;
		f = state->count < WATCH_THREADS_MAX
			    ? follow(state, &threads[i], sched_events_have_calls(&state->events), now_ns)
			    : NULL;
		if (!f) {
			state->left_out++;
			continue;
		}
		sched_events_add(&state->events, &threads[i].tid, 1);
		thread_count(threads[i].tid, &f->before);
		f->after = f->before;
		for (int m = 0; m < GAP; m++)
			add_later(h, &f->series[m], f);
	}
}

static void note_change(struct state *state, const struct follower *f, int64_t now_ns, const char *what,
			const char *from, const char *to)
{
	struct change *change = &state->changes[state->change_count];

	if (!strcmp(from, to) || state->change_count == CHANGES_MAX)
		return;
	*change = (struct change){.tid = f->thread.tid, .time_ns = now_ns, .what = what};
	snprintf(change->from, sizeof(change->from), "%s", from);
	snprintf(change->to, sizeof(change->to), "%s", to);
	state->change_count++;
}

static void name_policy(const struct thread_place *place, char room[PLACE_TEXT_MAX])
{
	static const char *const names[] = {"other", "fifo", "rr", "batch", "iso", "idle", "deadline", "ext"};

	snprintf(room, PLACE_TEXT_MAX, "%s %d",
		 place->policy >= 0 && place->policy < 8 ? names[place->policy] : "unknown", place->priority);
}

/* Compares how the threads may run with the last look. */
static void find_changes(struct state *state, int64_t now_ns)
{
	for (int i = 0; i < state->count; i++) {
		struct follower *f = state->followers[i];
		char from[PLACE_TEXT_MAX], to[PLACE_TEXT_MAX];
		struct thread_place place;

		if (f->ended_ns || !thread_place(f->thread.tid, &place))
			continue;
		name_policy(&f->place, from);
		name_policy(&place, to);
		note_change(state, f, now_ns, "policy", from, to);
		note_change(state, f, now_ns, "CPUs", f->place.cpus, place.cpus);
		note_change(state, f, now_ns, "control group", f->place.group, place.group);
		f->place = place;
	}
}

/* Another measurement may have begun, perhaps in another container. */
static void find_other(struct state *state)
{
	int root = state->other[0] ? -1 : tracefs_open();

	if (root < 0)
		return;
	trace_other(root, options.instance, explain_options.instance, state->other);
	close(root);
}

/* Once in look_ns: what is in /proc, and in tracefs. */
static void look(struct harness *h, int64_t now_ns)
{
	struct state *state = h->state;

	if (now_ns - state->looked_ns < options.look_ns)
		return;
	state->looked_ns = now_ns;
	find_changes(state, now_ns);
	find_later(h, now_ns);
	find_other(state);
}

/* Interrupts are recorded as soon as a thread may be a poller, because the kernel interrupts all CPUs when it
 * begins to record: if possible before the measured phase. */
static void find_pollers(struct harness *h, int64_t now_ns)
{
	struct state *state = h->state;

	for (int i = 0; i < state->count; i++) {
		struct follower *f = state->followers[i];

		if (f->poller || !follower_polls(f, now_ns))
			continue;
		if (!state->interrupts_tried)
			state->phase.interrupts = sched_events_add_interrupts(&state->events);
		state->interrupts_tried = true;
		if (now_ns < state->phase.from_ns)
			continue;
		add_later(h, &f->series[GAP], f);
		follower_begin_stops(f, clock_now_ns(CLOCK_MONOTONIC));
	}
}

static void learn(struct harness *h, int64_t now_ns)
{
	struct state *state = h->state;

	find_pollers(h, now_ns);
	if (now_ns < state->phase.from_ns)
		return;
	for (int i = 0; i < state->count; i++)
		follower_learn(state->followers[i], now_ns);
}

static void take_clock(struct state *state)
{
	int64_t set_ns;

	if (!sched_events_clock_set(&state->events, &set_ns))
		return;
	state->clock_sets++;
	if (llabs(set_ns) > llabs(state->clock_set_ns))
		state->clock_set_ns = set_ns;
}

static void end_followers(struct state *state, int64_t now_ns)
{
	int64_t end_ns = now_ns < state->phase.until_ns ? now_ns : state->phase.until_ns;

	for (int i = 0; i < state->count; i++)
		follower_end(state->followers[i], end_ns);
	followers_find_turns(state->followers, state->count);
}

/* At first, activations come late, because the kind of their loop is not known yet. */
static bool is_settled(const struct state *state, int64_t now_ns)
{
	return now_ns >= state->phase.from_ns + SETTLES_NS;
}

/* Keeps the events around a time for a thread; tid 0, or a thread that is not watched: the first that lives.
 */
static void keep_moment(const struct state *state, pid_t tid, int64_t time_ns, int64_t number)
{
	const struct follower *f = tid ? find_follower(state, tid) : NULL;
	struct explained who;

	for (int i = 0; i < state->count && !f; i++)
		f = state->followers[i]->ended_ns ? NULL : state->followers[i];
	f = f || !state->count ? f : state->followers[0];
	if (!f)
		return;
	who = follower_now(f);
	explain_trigger(&f->series[LATENCY], time_ns, number, &who);
}

static void take_requests(const struct state *state)
{
	struct moment_request request;

	while (commands_moment(&request))
		keep_moment(state, request.tid, request.time_ns, request.number);
}

/* Returns the time until the next drain. */
static int64_t pause_ns(const struct state *state, int64_t now_ns)
{
	int64_t usual_ns = explain_pause_ns(DRAIN_NS), hurried_ns = options.drain_ns / HURRIED_PART;

	if (!options.drain_ns || !is_settled(state, now_ns))
		return usual_ns;
	if (!explain_hurries(now_ns))
		return options.drain_ns;
	return hurried_ns > usual_ns ? hurried_ns : usual_ns;
}

static bool drain(struct harness *h, struct json *j)
{
	struct state *state = h->state;
	bool goes_on = !atomic_load(&harness_shared.stop);
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	take_clock(state);
	for (int i = 0; i < state->count; i++) {
		if (state->followers[i]->rules.stacks)
			user_stacks_read(state->followers[i]->rules.stacks);
	}
	sched_events_take(&state->events, take_event, h, !goes_on);
	if (state->events.overflowed) { /* there was no room for them */
		state->events.overflowed = false;
		state->dropped += now_ns >= state->phase.from_ns;
		lose(state, state->taken_ns, now_ns);
	}
	if (goes_on && !state->cost.over) /* a turn may take long, and events go on meanwhile */
		explain_take(j);
	if (goes_on && watch_cost_turn(&state->cost, now_ns)) {
		now_ns = clock_now_ns(CLOCK_MONOTONIC);
		lose(state, state->taken_ns, now_ns);
	}
	state->taken_ns = now_ns;
	if (goes_on) {
		take_requests(state);
		look(h, now_ns);
		learn(h, now_ns);
		count_in_phase(state, now_ns);
	} else if (!state->ended) { /* the harness drains once more */
		state->ended = true;
		end_followers(state, now_ns);
	}
	for (unsigned int i = 0; i < h->series_count; i++)
		state->series[i]->reached_ns = now_ns;
	h->pause_ns = pause_ns(state, now_ns);
	if (goes_on && now_ns >= state->phase.until_ns)
		harness_end_by(h, "duration");
	else if (goes_on && !process_lives((pid_t)options.pid, state->program.start)) {
		if (options.keep_end)
			keep_moment(state, 0, now_ns, 0);
		harness_end_by(h, "program-ended");
	}
	return goes_on;
}

static int run(struct harness *h)
{
	struct state *state = h->state;
	int64_t measured_ns = phase_ns();

	if (!options.instance)
		return usage_error("--trace-instance is missing");
	state->start_ns = state->taken_ns = clock_now_ns(CLOCK_MONOTONIC);
	state->phase = (struct phase){.from_ns = state->start_ns + harness_options.warm_up_ns,
				      .until_ns = INT64_MAX,
				      .own = gettid(),
				      .j = &h->j};
	if (measured_ns != INT64_MAX)
		state->phase.until_ns = state->phase.from_ns + measured_ns;
	for (int i = 0; i < state->count; i++)
		follower_begin(state->followers[i], &state->phase, &state->wish,
			       sched_events_have_calls(&state->events), state->start_ns);
	for (unsigned int i = 0; i < h->series_count; i++)
		series_timed(state->series[i], state->start_ns, harness_options.warm_up_ns, measured_ns);
	watch_cost_begin(&state->cost, &state->events, state->start_ns, state->tids, state->first_count);
	harness_go(h);
	harness_drain(h, drain, DRAIN_NS);
	sched_events_close(&state->events);
	return harness_finish(h, "duration");
}

static void write_changes(const struct state *state, struct json *j)
{
	for (int i = 0; i < state->change_count; i++) {
		const struct change *change = &state->changes[i];
		const struct follower *f = find_follower(state, change->tid);

		stream_result(j, "change");
		json_str(j, "task", f ? f->label : "");
		json_int(j, "number", i + 1);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_str(j, "what", change->what);
		json_str(j, "from", change->from);
		json_str(j, "to", change->to);
		json_int(j, "after_ns", change->time_ns - state->phase.from_ns);
		stream_result_end(j);
	}
}

static void write_parts(const struct state *state, struct json *j)
{
	if (options.points.cost) {
		stream_result(j, "point-cost");
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "cost_ns", state->events.points.cost_ns);
		json_int(j, "budget_ns", options.points.budget_ns);
		stream_result_end(j);
	}
	for (int i = 0; i < state->part_count; i++) {
		const struct part *part = &state->parts[i];

		stream_result(j, "part");
		json_str(j, "part", part->name);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "begun", part->begun);
		json_int(j, "ended", part->series.total.count);
		stream_result_end(j);
		/* Each thread may be in the part at the end. */
		if (part->begun - part->series.total.count > state->count)
			stream_mark(
				j, "parts-not-ended", SEVERITY_DOUBTFUL, (int)part->series.id,
				"the part %s began %lld times, but %lld times it did not end at the next point",
				part->name, (long long)part->begun,
				(long long)(part->begun - part->series.total.count));
	}
}

/* Threads that began in the measured phase, and that were not watched. */
static int64_t unwatched(const struct state *state)
{
	int64_t followed = state->count - state->first_count;

	return state->begun > followed ? state->begun - followed : 0;
}

/* What the wall clock did is in doubt only for threads that wait for its times. */
static void mark_clock(const struct state *state, struct json *j)
{
	for (int i = 0; state->clock_sets && i < state->count; i++) {
		const struct follower *f = state->followers[i];

		if (f->cycles.chosen && f->cycles.model.wall)
			stream_mark(j, "wall-clock-set", SEVERITY_DOUBTFUL, (int)f->series[LATENCY].id,
				    "%s waits for times on the wall clock, which somebody set %s by %.1f ms "
				    "during the measurement; use CLOCK_MONOTONIC (C++: steady_clock)",
				    f->label, state->clock_set_ns < 0 ? "back" : "forward",
				    fabs((double)state->clock_set_ns) / 1e6);
	}
}

static void mark_threads(const struct state *state, struct json *j)
{
	int64_t missed = unwatched(state);

	if (state->left_out)
		stream_mark(j, "threads-left-out", SEVERITY_DOUBTFUL, -1,
			    "rtgauge did not watch %d threads, because it can watch at most %d; name the "
			    "threads that matter (--threads)",
			    state->left_out, WATCH_THREADS_MAX);
	if (missed)
		stream_mark(j, "threads-unwatched", SEVERITY_DOUBTFUL, -1,
			    "the program started %lld threads that ended too soon to be watched; the figures "
			    "leave out what they did",
			    (long long)missed);
}

/* How the program ended, as far as its threads show it. */
static void write_end(const struct state *state, int64_t reached_ns, struct json *j)
{
	int64_t smis = cpu_counters_smis();

	stream_result(j, "watched");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_int(j, "definitions", CYCLES_DEFINITIONS);
	json_int(j, "threads_left_out", state->left_out);
	json_int(j, "threads_begun", state->begun);
	json_int(j, "threads_begun_unwatched", unwatched(state));
	json_int(j, "gaps", state->dropped);
	json_int(j, "clock_sets", state->clock_sets);
	json_int(j, "clock_set_ns", state->clock_set_ns);
	json_int(j, "watched_ns", reached_ns - state->phase.from_ns);
	if (state->rttime_us >= 0)
		json_int(j, "rttime_us", state->rttime_us);
	if (smis >= 0)
		json_int(j, "smis", smis);
	if (state->signal_ns) {
		json_int(j, "signal", state->signal);
		json_int(j, "signal_after_ns", state->signal_ns - state->phase.from_ns);
	}
	stream_result_end(j);
}

static void conclude(struct harness *h, struct json *j)
{
	const struct state *state = h->state;

	for (int i = 0; i < state->count; i++)
		follower_conclude(state->followers[i], j);
	write_changes(state, j);
	write_parts(state, j);
	write_end(state, state->taken_ns, j);
	mark_clock(state, j);
	mark_threads(state, j);
	if (state->other[0] && !trace_is_recorder(state->other)) /* the harness tells of recorders */
		stream_mark(j, "measured-together", SEVERITY_NOTE, -1,
			    "another measurement ran on this kernel at the same time (tracefs instance %s)",
			    state->other);
	watch_cost_write(&state->cost, j);
	if (state->dropped)
		stream_mark(j, "trace-dropped", SEVERITY_DOUBTFUL, -1,
			    "the kernel dropped events %lld time(s); releases at these times are unknown and "
			    "count as possibly late",
			    (long long)state->dropped);
}

static bool explained(const struct harness *h, const struct series *s, struct explained *who)
{
	const struct state *state = h->state;
	const struct follower *f = state->owners[s->id];

	if (!f || (s != &f->series[LATENCY] && s != &f->series[RESPONSE]))
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
      "latency, response, execution time and period of the threads of a program, and what blocks and "
      "preempts them")
