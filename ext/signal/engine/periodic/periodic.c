// SPDX-License-Identifier: MIT
/*
 * periodic: a task toggles a line each half-period. The probe measures how late each edge is, and how far
 * each half-period is from the nominal one. Both the task and the other end of the line measure (Brown &
 * Martin 2010, sec. 2.2 and 3.5; Adam et al. 2021, algorithm A2). ext/signal/engine/periodic has the task,
 * the other end and their edges.
 */
#include <string.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/stream.h"
#include "base/verbs.h"
#include "ext/signal/engine/path/path.h"
#include "ext/signal/engine/path/wire.h"
#include "ext/signal/engine/periodic/edge_reference.h"
#include "ext/signal/engine/periodic/edges.h"
#include "ext/signal/engine/periodic/kernel_toggler.h"
#include "ext/signal/engine/periodic/tasks.h"
#include "harness/harness.h"
#include "harness/peer_process.h"
#include "rt/runtime.h"

#define LEAD_NS (NS_PER_S / 50)	      /* from `go` to the first edge; by then, every task waits */
#define KERNEL_LEAD_NS (NS_PER_S / 5) /* by then, the module must have started */
#define DRAIN_MAX_NS (NS_PER_S / 10)
#define AFTER_NS (NS_PER_S / 20) /* time for the last edge to arrive */

enum timer { TIMER_NANOSLEEP, TIMER_TIMERFD };

static const char *const timer_names[] = {"nanosleep", "timerfd", NULL};
static const char *const context_names[] = {"irq", "thread", NULL}; /* as enum rtgauge_context */

static struct {
	int timer;
	int64_t period_ns;
} options = {.period_ns = 7071000};

static const struct option_entry table[] = {
	{.shared = roles_options_table},
	{.shared = roles_option_context, .choices = context_names},
	{.name = "period-ns",
	 .kind = OPTION_INT,
	 .value = &options.period_ns,
	 .min = 2000,
	 .max = 3600 * NS_PER_S,
	 .help = "period of the signal; the task toggles the line every half-period"},
	{.name = "timer",
	 .kind = OPTION_CHOICE,
	 .value = &options.timer,
	 .choices = timer_names,
	 .help = "how the task waits for its time"},
	{.shared = harness_option_cpu},
	{.shared = harness_option_count,
	 .help = "number of half-periods in the measured phase, instead of a duration"},
	{.shared = harness_options_measuring},
	{.shared = explain_options_table},
	{0},
};

struct state {
	struct toggler toggler;
	struct observer *observer;
	struct edges edges;
	struct harness_thread watching;	      /* the observer, if this engine has only that role */
	struct kernel_toggler kernel_toggler; /* the toggling task, if it is in the kernel */
	struct edge_reference reference;
	struct path_end ends[2];
	int64_t end_ns;
	struct series *shown[EDGES_SERIES + KERNEL_STEPS + EDGE_REFERENCE_SERIES];
	struct harness_thread *threads[1];
	struct harness_thread *measurers[EDGES_SERIES + KERNEL_STEPS + EDGE_REFERENCE_SERIES];
};

static void watch(struct harness_thread *thread)
{
	const struct state *state = container_of(thread, struct state, watching);

	usage_read(thread->schedstat, &thread->before);
	observer_watch(state->observer);
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = true;
}

/* Takes the toggles since the last call. Returns false if the task has ended. */
static bool take_toggles(struct state *state, struct json *j)
{
	bool done;

	if (role_options.space == SPACE_KERNEL) {
		if (atomic_load(&harness_shared.stop))
			kernel_toggler_stop(&state->kernel_toggler);
		return kernel_toggler_take(&state->kernel_toggler, &state->edges, j);
	}
	done = atomic_load(&state->threads[0]->done);
	edges_take_toggles(&state->edges, &state->toggler, j);
	return !done;
}

static bool drain(struct harness *h, struct json *j)
{
	struct state *state = h->state;
	bool goes_on = take_toggles(state, j);

	if (state->observer)
		edges_take_sights(&state->edges, state->observer, j);
	if (role_options.role == PATH_BOTH && !peer_process_lives(h->peer))
		harness_end_by(h, "slave-died");
	if (state->edges.reference)
		edge_reference_take(&state->reference, false, j);
	return goes_on;
}

static bool drain_alone(struct harness *h, struct json *j)
{
	struct state *state = h->state;
	bool done = atomic_load(&state->threads[0]->done);
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
	struct series *s = &state->edges.series[OTHER_JITTER];

	edges_take_sights(&state->edges, state->observer, j);
	s->reached_ns = now_ns;
	if (!done)
		roles_end_alone(h, s, state->end_ns, atomic_load(&state->observer->over));
	return !done;
}

static void conclude(struct harness *h, struct json *j)
{
	const struct state *state = h->state;

	if (role_options.role != PATH_SLAVE) {
		stream_result(j, "signal");
		json_str(j, "role", "self");
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "edges",
			 role_options.space == SPACE_KERNEL ? state->kernel_toggler.edges
							    : state->toggler.edges);
		stream_result_end(j);
	}
	if (role_options.role != PATH_MASTER) {
		stream_result(j, "signal");
		json_str(j, "role", "observer");
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "edges", state->edges.seen);
		json_int(j, "double-edge", state->edges.doubled);
		json_int(j, "lost", state->edges.lost);
		stream_result_end(j);
	}
	if (role_options.space == SPACE_KERNEL)
		kernel_toggler_conclude(&state->kernel_toggler, j);
	if (state->edges.reference)
		wire_conclude(state->reference.matched, state->reference.unmatched, "edges", j);
	if (role_options.role == PATH_SLAVE && !state->edges.seen)
		roles_mark_no_stimulus("edge", j);
	roles_mark_died(h, "observer", j);
}

static int check(struct harness *h)
{
	struct state *state = h->state;

	state->toggler.half_ns = state->edges.half_ns = options.period_ns / 2;
	if (options.period_ns % 2)
		return error_line(STATUS_USAGE, "interval",
				  "half of a period of %lld ns is not a whole number of ns; give an even "
				  "number",
				  (long long)options.period_ns);
	if (role_options.space == SPACE_KERNEL && options.timer != TIMER_NANOSLEEP)
		return usage_error(
			"--timer works only in user space, because a task in the kernel always uses a "
			"high-resolution timer; leave it out");
	if (harness_options.count && harness_options.count > INT64_MAX / 4 / state->toggler.half_ns)
		return usage_error("this many edges would take more than 70 years; give a smaller number");
	return 0;
}

static void show(struct harness *h, struct series *s, struct harness_thread *measurer)
{
	struct state *state = h->state;

	s->id = h->series_count;
	state->measurers[h->series_count] = measurer;
	state->shown[h->series_count++] = s;
}

/* The wire's series, and the series of differences to it. */
static void make_reference_series(struct harness *h)
{
	struct state *state = h->state;
	static const char *const metrics[] = {"latency", "jitter", "difference", "difference"};
	static const char *const roles[] = {"wire", "wire", "self", "observer"};

	for (unsigned int i = 0; i < EDGE_REFERENCE_SERIES; i++) {
		struct series *s = &state->reference.series[i];

		if (i == OTHER_DIFFERENCE && !state->observer)
			continue;
		s->cpu = i == OTHER_DIFFERENCE ? h->peer->cpu : state->edges.series[SELF_LATENCY].cpu;
		s->metric = metrics[i];
		s->labels[0] = (struct label){"role", roles[i]};
		s->negatives = memory_get(sizeof(*s->negatives));
		show(h, s, NULL);
	}
}

static void make_series(struct harness *h, int own_cpu)
{
	struct state *state = h->state;
	static const char *const metrics[] = {"latency", "jitter", "latency", "jitter"};
	enum path_role role = (enum path_role)role_options.role;
	struct harness_thread *thread = role_options.space == SPACE_KERNEL ? NULL : state->threads[0];
	bool wants[] = {role != PATH_SLAVE, role != PATH_SLAVE, role == PATH_BOTH, role != PATH_MASTER};

	for (unsigned int i = 0; i < EDGES_SERIES; i++) {
		struct series *s = &state->edges.series[i];

		if (!wants[i])
			continue;
		s->cpu = i < OTHER_LATENCY || role == PATH_SLAVE ? own_cpu : h->peer->cpu;
		s->metric = metrics[i];
		s->labels[0] = (struct label){"role", i < OTHER_LATENCY ? "self" : "observer"};
		if (i != SELF_LATENCY || RUNTIME_FIRES_EARLY)
			s->negatives = memory_get(sizeof(*s->negatives));
		show(h, s, i == SELF_LATENCY || role == PATH_SLAVE ? thread : NULL);
	}
	for (int i = 0; state->kernel_toggler.steps && i < KERNEL_STEPS; i++) {
		if (i == STEP_INTERRUPT ? RUNTIME_HANDLES_TIMERS
					: i != STEP_THREAD || role_options.context == RTGAUGE_CONTEXT_THREAD)
			show(h, &state->kernel_toggler.steps[i], NULL);
	}
	if (state->edges.reference)
		make_reference_series(h);
}

/* Starts the observer if this engine has that role. */
static int make_observer(const struct harness *h, int cpu)
{
	struct state *state = h->state;

	if (role_options.role == PATH_MASTER)
		return 0;
	state->observer = observer_new(&state->ends[PATH_SLAVE]);
	if (!state->observer)
		return harness_no_memory();
	return role_options.role == PATH_BOTH
		       ? peer_process_start(h->peer, cpu, observer_join, observer_watch, state->observer)
		       : 0;
}

static void make_thread(struct state *state, const int cpu[2])
{
	bool alone = role_options.role == PATH_SLAVE;
	struct harness_thread *t = alone ? &state->watching : &state->toggler.thread;

	state->watching.measure = watch;
	harness_thread_on(t, cpu[alone ? PATH_SLAVE : PATH_MASTER]);
	state->threads[0] = t;
}

/* Opens the path and, if the task is in the kernel, the task. */
static int open_path(struct state *state, int task_cpu)
{
	struct path_kernel_end end = {.task = PATH_MASTER};
	enum path_role role = (enum path_role)role_options.role;
	int status;

	if (role_options.space == SPACE_USER)
		return path_open(role_options.path, role, false, state->ends);
	status = path_open_for_kernel(role_options.path, role, false, &end, state->ends);
	return status ? status : kernel_toggler_open(&state->kernel_toggler, &end, task_cpu);
}

/* Opens both ends of the path, and assigns their tasks to the chosen CPUs. Returns 0, or the exit status
 * after an `error` line. */
static int prepare_ends(const struct harness *h, int cpu[2])
{
	struct state *state = h->state;
	int status = roles_cpus(h->cpus, cpu);

	if (status)
		return status;
	status = open_path(state, cpu[PATH_MASTER]);
	if (status)
		return status;
	status = make_observer(h, cpu[PATH_SLAVE]);
	return status ? status : roles_join(state->ends);
}

static int prepare_probe(struct harness *h)
{
	struct state *state = h->state;
	int cpu[2], status = prepare_ends(h, cpu);

	if (status)
		return status;
	h->threads = state->threads;
	h->series = state->shown;
	h->measurers = state->measurers;
	if (!edges_make(&state->edges) ||
	    (role_options.role != PATH_SLAVE && !toggler_make(&state->toggler)) ||
	    (wire_is_open() && !edge_reference_make(&state->reference)))
		return harness_no_memory();
	state->edges.reference = wire_is_open() ? &state->reference : NULL;
	state->reference.half_ns = state->edges.half_ns;
	state->toggler.end = &state->ends[PATH_MASTER];
	state->toggler.by_timerfd = options.timer == TIMER_TIMERFD;
	state->toggler.tells_over = state->toggler.end->kind == &path_udp && role_options.role == PATH_MASTER;
	state->edges.both = role_options.role == PATH_BOTH;
	if (role_options.space == SPACE_USER)
		make_thread(state, cpu);
	else
		h->thread_count = 0;
	make_series(h, cpu[role_options.role == PATH_SLAVE ? PATH_SLAVE : PATH_MASTER]);
	return 0;
}

static void set_times(const struct harness *h)
{
	struct state *state = h->state;
	bool until_told = role_options.role == PATH_SLAVE && !harness_options.duration_ns;
	int64_t half_ns = state->toggler.half_ns, warm_up_ns;
	int64_t measured_ns = harness_options.duration_ns ? harness_options.duration_ns
			      : harness_options.count	  ? harness_options.count * half_ns
							  : INT64_MAX;
	struct series *grid = &state->edges.series[SELF_LATENCY];

	state->toggler.start_ns = state->edges.start_ns =
		clock_now_ns(CLOCK_MONOTONIC) +
		(role_options.space == SPACE_KERNEL ? KERNEL_LEAD_NS : LEAD_NS);
	state->toggler.warm_up_count = (harness_options.warm_up_ns + half_ns - 1) / half_ns;
	state->toggler.total_count = measured_ns == INT64_MAX ? INT64_MAX
							      : state->toggler.warm_up_count +
									(measured_ns + half_ns - 1) / half_ns;
	warm_up_ns = state->toggler.warm_up_count * half_ns;
	state->end_ns = measured_ns == INT64_MAX || until_told
				? INT64_MAX
				: state->toggler.start_ns + warm_up_ns + measured_ns;
	for (unsigned int i = 0; i < h->series_count; i++)
		series_timed(state->shown[i], state->toggler.start_ns, warm_up_ns,
			     until_told ? INT64_MAX : measured_ns);
	if (role_options.role == PATH_SLAVE)
		return;
	*grid = (struct series){.id = grid->id,
				.cpu = grid->cpu,
				.metric = grid->metric,
				.labels = {grid->labels[0]},
				.samples = grid->samples,
				.negatives = grid->negatives,
				.interval_ns = half_ns,
				.start_ns = state->toggler.start_ns,
				.warm_up_count = state->toggler.warm_up_count,
				.total_count = state->toggler.total_count,
				.measured_ns = measured_ns};
}

static int run(struct harness *h)
{
	struct state *state = h->state;
	bool by_module = role_options.space == SPACE_KERNEL || state->edges.reference;
	int64_t span_ns = (by_module ? KMOD_CAPACITY : TOGGLER_ROOM) / 8 * state->toggler.half_ns;
	bool alone = role_options.role == PATH_SLAVE;
	int error;

	set_times(h);
	error = state->edges.reference ? wire_begin() : 0;
	if (!error && role_options.space == SPACE_KERNEL)
		error = kernel_toggler_start(&state->kernel_toggler, &state->edges.series[SELF_LATENCY]);
	if (error)
		return error;
	harness_go(h);
	if (h->thread_count)
		harness_watch(h, state->end_ns == INT64_MAX ? INT64_MAX
							    : state->end_ns - state->toggler.start_ns);
	harness_drain(h, alone ? drain_alone : drain, span_ns < DRAIN_MAX_NS ? span_ns : DRAIN_MAX_NS);
	if (state->observer && !alone) {
		clock_pause_ns(AFTER_NS);
		drain(h, &h->j);
	}
	if (role_options.space == SPACE_KERNEL)
		kernel_toggler_stop(&state->kernel_toggler);
	if (state->edges.reference) {
		wire_end();
		edge_reference_take(&state->reference, true, &h->j);
	}
	peer_process_end(h->peer);
	error = state->toggler.error ? state->toggler.error
		: state->observer    ? atomic_load(&state->observer->error)
				     : 0;
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "path", "%.100s failed during the measurement: %s",
				  role_options.path, strerror(error));
	if (state->observer)
		state->edges.series[OTHER_JITTER].lost = state->edges.series[OTHER_LATENCY].lost =
			atomic_load(&state->observer->not_kept);
	return harness_finish(h, harness_options.count ? "count" : "duration");
}

static int verb_periodic(int argc, char **argv)
{
	static struct harness harness = {
		.table = table,
		.state_size = sizeof(struct state),
		.check = check,
		.prepare = prepare_probe,
		.run = run,
		.conclude = conclude,
	};

	return roles_run(&harness, argc, argv);
}

PROBE("periodic", verb_periodic, "how late and how evenly a task toggles a line at a fixed period")
