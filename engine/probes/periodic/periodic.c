// SPDX-License-Identifier: MIT
/*
 * periodic: a task toggles a line each half-period; how late each edge is and how far each half-period is
 * from the nominal one, as the task itself and as the other end of the line sees it (Brown & Martin 2010,
 * sec. 2.2 and 3.5; Adam et al. 2021, algorithm A2). The task, the other end and what becomes of their edges
 * are in engine/probes/periodic.
 */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/stream.h"
#include "base/verbs.h"
#include "harness/harness.h"
#include "harness/peer_process.h"
#include "probes/periodic/edge_reference.h"
#include "probes/periodic/edges.h"
#include "probes/periodic/kernel_toggler.h"
#include "probes/periodic/tasks.h"
#include "rt/runtime.h"
#include "signal/path.h"
#include "signal/wire.h"

#define LEAD_NS (NS_PER_S / 50)	      /* from `go` to the first edge: every task waits by then */
#define KERNEL_LEAD_NS (NS_PER_S / 5) /* its module has to be started by then */
#define DRAIN_MAX_NS (NS_PER_S / 10)
#define AFTER_NS (NS_PER_S / 20) /* for the last edge to arrive */

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
	 .help = "of the signal; the line is toggled each half of it (7071000)"},
	{.name = "timer",
	 .kind = OPTION_CHOICE,
	 .value = &options.timer,
	 .choices = timer_names,
	 .help = "waits by"},
	{.shared = harness_option_cpu},
	{.shared = harness_option_count, .help = "half-periods in the measured phase, instead of a duration"},
	{.shared = harness_options_measuring},
	{.shared = explain_options_table},
	{0},
};

static struct toggler toggler;
static struct observer *observer;
static struct edges edges;
static struct harness_thread watching;	     /* the observer, where this engine is nothing else */
static struct kernel_toggler kernel_toggler; /* who toggles, where that is in the kernel */
static struct edge_reference reference;
static struct path_end ends[2];
static struct peer_process peer;
static int64_t end_ns;
static struct series *shown[EDGES_SERIES + KERNEL_STEPS + EDGE_REFERENCE_SERIES];
static struct harness_thread *threads[1];
static struct harness_thread *measurers[EDGES_SERIES + KERNEL_STEPS + EDGE_REFERENCE_SERIES];
static struct harness harness;

static void watch(struct harness_thread *thread)
{
	usage_read(thread->schedstat, &thread->before);
	observer_watch(observer);
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = true;
}

/* What the task has toggled since; false: it has ended. */
static bool take_toggles(struct json *j)
{
	bool done;

	if (role_options.space == SPACE_KERNEL) {
		if (atomic_load(&harness_shared.stop))
			kernel_toggler_stop(&kernel_toggler);
		return kernel_toggler_take(&kernel_toggler, &edges, j);
	}
	done = atomic_load(&threads[0]->done);
	edges_take_toggles(&edges, &toggler, j);
	return !done;
}

static bool drain(struct json *j)
{
	bool goes_on = take_toggles(j);

	if (observer)
		edges_take_sights(&edges, observer, j);
	if (role_options.role == PATH_BOTH && !peer_process_lives(&peer))
		harness_end_by(&harness, "slave-died");
	if (edges.reference)
		edge_reference_take(&reference, false, j);
	return goes_on;
}

static bool drain_alone(struct json *j)
{
	bool done = atomic_load(&threads[0]->done);
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
	struct series *s = &edges.series[OTHER_JITTER];

	edges_take_sights(&edges, observer, j);
	s->reached_ns = now_ns;
	if (!done && now_ns >= end_ns)
		harness_end_by(&harness, "duration");
	else if (!done && (atomic_load(&observer->over) ||
			   (harness_options.count &&
			    s->total.count + (s->measuring ? s->window.count : 0) >= harness_options.count)))
		harness_end_by(&harness, "count");
	return !done;
}

static void conclude(struct json *j)
{
	if (role_options.role != PATH_SLAVE) {
		stream_result(j, "signal");
		json_str(j, "role", "self");
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "edges",
			 role_options.space == SPACE_KERNEL ? kernel_toggler.edges : toggler.edges);
		stream_result_end(j);
	}
	if (role_options.role != PATH_MASTER) {
		stream_result(j, "signal");
		json_str(j, "role", "observer");
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "edges", edges.seen);
		json_int(j, "double-edge", edges.doubled);
		json_int(j, "lost", edges.lost);
		stream_result_end(j);
	}
	if (role_options.space == SPACE_KERNEL)
		kernel_toggler_conclude(&kernel_toggler, j);
	if (edges.reference)
		wire_conclude(reference.matched, reference.unmatched, "edges", j);
	if (role_options.role == PATH_SLAVE && !edges.seen)
		stream_mark(j, "no-stimulus", SEVERITY_INVALID, 0,
			    "no edge came on %s: is the master running, and is its line this one?",
			    role_options.path);
	if (peer.died[0])
		stream_mark(j, "slave-died", SEVERITY_INVALID, -1, "the observer %s while it was needed",
			    peer.died);
}

static int check(struct harness *h)
{
	(void)h;
	toggler.half_ns = edges.half_ns = options.period_ns / 2;
	if (options.period_ns % 2)
		return error_line(STATUS_USAGE, "interval",
				  "a period of %lld ns has no half in whole ns; give an even number",
				  (long long)options.period_ns);
	if (role_options.space == SPACE_KERNEL && options.timer != TIMER_NANOSLEEP)
		return usage_error(
			"--timer is of a task in user space; in the kernel it is a high-resolution timer");
	if (harness_options.count && harness_options.count > INT64_MAX / 4 / toggler.half_ns)
		return usage_error("that many half-periods take more than 70 years");
	return 0;
}

static void show(struct harness *h, struct series *s, struct harness_thread *measurer)
{
	s->id = h->series_count;
	measurers[h->series_count] = measurer;
	shown[h->series_count++] = s;
}

/* The wire's series, and the differences to it. */
static void make_reference_series(struct harness *h)
{
	static const char *const metrics[] = {"latency", "jitter", "difference", "difference"};
	static const char *const roles[] = {"wire", "wire", "self", "observer"};

	for (unsigned int i = 0; i < EDGE_REFERENCE_SERIES; i++) {
		struct series *s = &reference.series[i];

		if (i == OTHER_DIFFERENCE && !observer)
			continue;
		s->cpu = i == OTHER_DIFFERENCE ? peer.cpu : edges.series[SELF_LATENCY].cpu;
		s->metric = metrics[i];
		s->labels[0] = (struct label){"role", roles[i]};
		s->negatives = memory_get(sizeof(*s->negatives));
		show(h, s, NULL);
	}
}

static void make_series(struct harness *h, int own_cpu)
{
	static const char *const metrics[] = {"latency", "jitter", "latency", "jitter"};
	enum path_role role = (enum path_role)role_options.role;
	struct harness_thread *thread = role_options.space == SPACE_KERNEL ? NULL : threads[0];
	bool wants[] = {role != PATH_SLAVE, role != PATH_SLAVE, role == PATH_BOTH, role != PATH_MASTER};

	for (unsigned int i = 0; i < EDGES_SERIES; i++) {
		struct series *s = &edges.series[i];

		if (!wants[i])
			continue;
		s->cpu = i < OTHER_LATENCY || role == PATH_SLAVE ? own_cpu : peer.cpu;
		s->metric = metrics[i];
		s->labels[0] = (struct label){"role", i < OTHER_LATENCY ? "self" : "observer"};
		if (i != SELF_LATENCY || RUNTIME_FIRES_EARLY)
			s->negatives = memory_get(sizeof(*s->negatives));
		show(h, s, i == SELF_LATENCY || role == PATH_SLAVE ? thread : NULL);
	}
	for (int i = 0; kernel_toggler.steps && i < KERNEL_STEPS; i++) {
		if (i == STEP_INTERRUPT ? RUNTIME_HANDLES_TIMERS
					: i != STEP_THREAD || role_options.context == RTGAUGE_CONTEXT_THREAD)
			show(h, &kernel_toggler.steps[i], NULL);
	}
	if (edges.reference)
		make_reference_series(h);
}

/* The observer where this engine has that role, and the peer that it then is. */
static int make_observer(int cpu)
{
	if (role_options.role == PATH_MASTER)
		return 0;
	observer = observer_new(&ends[PATH_SLAVE]);
	if (!observer)
		return harness_no_memory();
	return role_options.role == PATH_BOTH
		       ? peer_process_start(&peer, cpu, observer_join, observer_watch, observer)
		       : 0;
}

static void make_thread(const int cpu[2])
{
	bool alone = role_options.role == PATH_SLAVE;
	struct harness_thread *t = alone ? &watching : &toggler.thread;

	watching.measure = watch;
	t->cpu = cpu[alone ? PATH_SLAVE : PATH_MASTER];
	t->policy = (enum policy)harness_options.policy;
	t->priority = (int)harness_options.priority;
	threads[0] = t;
}

/* The path, and in the kernel the task. */
static int open_path(int task_cpu)
{
	struct path_kernel_end end = {.task = PATH_MASTER};
	enum path_role role = (enum path_role)role_options.role;
	int status;

	if (role_options.space == SPACE_USER)
		return path_open(role_options.path, role, false, ends);
	status = path_open_for_kernel(role_options.path, role, false, &end, ends);
	return status ? status : kernel_toggler_open(&kernel_toggler, &end, task_cpu);
}

/* Both ends of the path and who is at them, on CPUs that are chosen. 0, or the exit status after an `error`
 * line. */
static int prepare_ends(const struct harness *h, int cpu[2])
{
	int status = roles_cpus(h->cpus, cpu);

	if (status)
		return status;
	status = open_path(cpu[PATH_MASTER]);
	if (status)
		return status;
	status = make_observer(cpu[PATH_SLAVE]);
	return status ? status : roles_join(ends);
}

static int prepare_probe(struct harness *h)
{
	int cpu[2], status = prepare_ends(h, cpu);

	if (status)
		return status;
	if (!edges_make(&edges) || (role_options.role != PATH_SLAVE && !toggler_make(&toggler)) ||
	    (wire_is_open() && !edge_reference_make(&reference)))
		return harness_no_memory();
	edges.reference = wire_is_open() ? &reference : NULL;
	reference.half_ns = edges.half_ns;
	toggler.end = &ends[PATH_MASTER];
	toggler.by_timerfd = options.timer == TIMER_TIMERFD;
	toggler.tells_over = toggler.end->kind == &path_udp && role_options.role == PATH_MASTER;
	edges.both = role_options.role == PATH_BOTH;
	if (role_options.space == SPACE_USER)
		make_thread(cpu);
	else
		h->thread_count = 0;
	make_series(h, cpu[role_options.role == PATH_SLAVE ? PATH_SLAVE : PATH_MASTER]);
	return 0;
}

static void set_times(void)
{
	bool until_told = role_options.role == PATH_SLAVE && !harness_options.duration_ns;
	int64_t half_ns = toggler.half_ns, warm_up_ns;
	int64_t measured_ns = harness_options.duration_ns ? harness_options.duration_ns
			      : harness_options.count	  ? harness_options.count * half_ns
							  : INT64_MAX;
	struct series *grid = &edges.series[SELF_LATENCY];

	toggler.start_ns = edges.start_ns = clock_now_ns(CLOCK_MONOTONIC) +
					    (role_options.space == SPACE_KERNEL ? KERNEL_LEAD_NS : LEAD_NS);
	toggler.warm_up_count = (harness_options.warm_up_ns + half_ns - 1) / half_ns;
	toggler.total_count = measured_ns == INT64_MAX
				      ? INT64_MAX
				      : toggler.warm_up_count + (measured_ns + half_ns - 1) / half_ns;
	warm_up_ns = toggler.warm_up_count * half_ns;
	end_ns = measured_ns == INT64_MAX || until_told ? INT64_MAX
							: toggler.start_ns + warm_up_ns + measured_ns;
	for (unsigned int i = 0; i < harness.series_count; i++)
		series_timed(shown[i], toggler.start_ns, warm_up_ns, until_told ? INT64_MAX : measured_ns);
	if (role_options.role == PATH_SLAVE)
		return;
	*grid = (struct series){.id = grid->id,
				.cpu = grid->cpu,
				.metric = grid->metric,
				.labels = {grid->labels[0]},
				.samples = grid->samples,
				.negatives = grid->negatives,
				.interval_ns = half_ns,
				.start_ns = toggler.start_ns,
				.warm_up_count = toggler.warm_up_count,
				.total_count = toggler.total_count,
				.measured_ns = measured_ns};
}

static int run(struct harness *h)
{
	bool by_module = role_options.space == SPACE_KERNEL || edges.reference;
	int64_t span_ns = (by_module ? KMOD_CAPACITY : TOGGLER_ROOM) / 8 * toggler.half_ns;
	bool alone = role_options.role == PATH_SLAVE;
	int error;

	set_times();
	error = edges.reference ? wire_begin() : 0;
	if (!error && role_options.space == SPACE_KERNEL)
		error = kernel_toggler_start(&kernel_toggler, &edges.series[SELF_LATENCY]);
	if (error)
		return error;
	harness_go(h);
	if (h->thread_count)
		harness_watch(h, end_ns == INT64_MAX ? INT64_MAX : end_ns - toggler.start_ns);
	harness_drain(h, alone ? drain_alone : drain, span_ns < DRAIN_MAX_NS ? span_ns : DRAIN_MAX_NS);
	if (observer && !alone) {
		clock_pause_ns(AFTER_NS);
		drain(&h->j);
	}
	if (role_options.space == SPACE_KERNEL)
		kernel_toggler_stop(&kernel_toggler);
	if (edges.reference) {
		wire_end();
		edge_reference_take(&reference, true, &h->j);
	}
	peer_process_end(&peer);
	error = toggler.error ? toggler.error : observer ? atomic_load(&observer->error) : 0;
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "path", "%.100s failed while it was measured: %s",
				  role_options.path, strerror(error));
	if (observer)
		edges.series[OTHER_JITTER].lost = edges.series[OTHER_LATENCY].lost =
			atomic_load(&observer->not_kept);
	return harness_finish(h, harness_options.count ? "count" : "duration");
}

static struct harness harness = {
	.table = table,
	.check = check,
	.prepare = prepare_probe,
	.run = run,
	.conclude = conclude,
	.threads = threads,
	.thread_count = 1,
	.peer = &peer,
	.series = shown,
	.measurers = measurers,
};

static int verb_periodic(int argc, char **argv)
{
	int status = harness_run(&harness, argc, argv);

	peer_process_end(&peer);
	return status;
}

PROBE("periodic", verb_periodic, "a task toggles a line at a fixed period: how late, how even")
