// SPDX-License-Identifier: MIT
/*
 * tire: simulates a tire on several threads, as fast as possible or a step a period (Garre et al. 2014,
 * sec. 4).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/verbs.h"
#include "ext/tire/engine/frame.h"
#include "ext/tire/engine/kernel.h"
#include "ext/tire/engine/memory_left.h"
#include "ext/tire/engine/run.h"
#include "ext/tire/engine/state_file.h"
#include "ext/tire/engine/threads.h"
#include "harness/harness.h"
#include "rt/runtime.h"

#define LEAD_NS (NS_PER_S / 50) /* from `go` to the first release; by then, every thread waits */
#define DRAIN_NS (NS_PER_S / 20)
#define BLOCK_NODES 4096 /* least node-steps in a sample, so that a clock reading takes at most 1 % of it */
#define BILLION 1e9
#define TAKE_ALL 1000 /* % of a CPU, because the threads themselves leave time to the machine */

enum solver { SOLVER_SERIAL, SOLVER_HALO, SOLVER_SEMAPHORE };
enum without { WITHOUT_NONE, WITHOUT_SPRINGS, WITHOUT_INTEGRATION };
enum { STEP_TIME = 0, LATENCY = 0, RESPONSE, SLACK, TIMED_METRICS };

static const char *const solver_names[] = {"serial", "halo", "semaphore", NULL};
static const char *const without_names[] = {"none", "springs", "integration", NULL};

static struct {
	int solver, without, floor;
	int64_t nodes, period_ns, mass, radius, height, gravity, speed, stiffness, damping;
	const char *threads, *state;
	bool free_running;
} options = {
	.solver = SOLVER_HALO,
	.floor = 1,
	.nodes = 4000,
	.threads = "1",
	.mass = INT64_C(10000000000),
	.radius = 300000000,
	.height = 500000000,
	.gravity = INT64_C(9810000000),
};

/* Physical quantities are whole billionths of their SI unit, so every machine reads the same number. */
static const struct option_entry quantity[] = {
	{.name = "", .kind = OPTION_INT, .max = INT64_C(1000000000000000)},
	{0},
};

static const struct option_entry table[] = {
	{.name = "solver",
	 .kind = OPTION_CHOICE,
	 .value = &options.solver,
	 .choices = solver_names,
	 .help = "how a step is computed"},
	{.name = "nodes",
	 .kind = OPTION_INT,
	 .value = &options.nodes,
	 .min = INT64_MIN,
	 .max = INT64_MAX,
	 .help = "number of nodes, a multiple of 4"},
	{.name = "threads",
	 .kind = OPTION_TEXT,
	 .value = &options.threads,
	 .help = "threads that compute together: a number, one, cores, hardware-threads or twice"},
	{.name = "period-ns",
	 .kind = OPTION_INT,
	 .value = &options.period_ns,
	 .min = 0,
	 .max = 3600 * NS_PER_S,
	 .help = "period of a step in real time; 0: as fast as possible"},
	{.shared = harness_option_cpu},
	{.shared = harness_option_policy},
	{.shared = harness_option_priority},
	{.shared = harness_option_duration},
	{.shared = harness_option_count,
	 .name = "steps",
	 .help = "steps in the measured phase (with a period: activations), instead of a duration"},
	{.shared = harness_option_warm_up},
	{.name = "without",
	 .kind = OPTION_CHOICE,
	 .value = &options.without,
	 .choices = without_names,
	 .help = "part of the step to leave out"},
	{.name = "free-running",
	 .kind = OPTION_FLAG,
	 .value = &options.free_running,
	 .help = "with --solver semaphore: no second buffer, and no barrier after a step"},
	{.shared = quantity,
	 .name = "mass-nkg",
	 .value = &options.mass,
	 .min = 1,
	 .help = "mass of the whole tire, in 1e-9 kg"},
	{.shared = quantity,
	 .name = "radius-nm",
	 .value = &options.radius,
	 .min = 1,
	 .help = "radius, in nm"},
	{.shared = quantity,
	 .name = "height-nm",
	 .value = &options.height,
	 .help = "height of the lowest node above the floor, in nm"},
	{.shared = quantity,
	 .name = "stiffness-nn-m",
	 .value = &options.stiffness,
	 .help = "stiffness of a spring, in 1e-9 N/m; 0: calculated from nodes and mass"},
	{.shared = quantity,
	 .name = "damping-nns-m",
	 .value = &options.damping,
	 .help = "damping of a spring, in 1e-9 N s/m; 0: calculated from nodes and mass"},
	{.shared = quantity, .name = "gravity-nm-s2", .value = &options.gravity, .help = "gravity, in nm/s2"},
	{.shared = quantity,
	 .name = "speed-nm-s",
	 .value = &options.speed,
	 .help = "speed to the right, in nm/s"},
	{.name = "floor",
	 .kind = OPTION_CHOICE,
	 .value = &options.floor,
	 .choices = harness_on_off,
	 .help = "whether there is a floor"},
	{.name = "state",
	 .kind = OPTION_TEXT,
	 .value = &options.state,
	 .help = "file for the final positions and velocities"},
	{.shared = harness_options_machine},
	{0},
};

struct state {
	struct tire_model model;
	struct tire_plan plan;
	struct series *all; /* one for each metric that is measured */
	struct series *series[TIMED_METRICS];
	struct harness_thread *measurers[TIMED_METRICS];
	struct harness_thread *threads[TIRE_THREADS_MAX];
	size_t step_bytes;
};

static int check_nodes(void)
{
	int64_t nodes = options.nodes;

	if (nodes < 4 || nodes > TIRE_NODES_MAX)
		return usage_error("the number of nodes must be from 4 to %d, not %lld", TIRE_NODES_MAX,
				   (long long)nodes);
	if (nodes % 4)
		return usage_error(
			"%lld is not a multiple of 4, as the four quadrants of the tire require; use %lld or %lld nodes",
			(long long)nodes, (long long)(nodes - nodes % 4), (long long)(nodes - nodes % 4 + 4));
	return 0;
}

static void set_model(struct state *state)
{
	state->model.nodes = options.nodes;
	state->model.mass = (double)options.mass / BILLION;
	state->model.radius = (double)options.radius / BILLION;
	state->model.height = (double)options.height / BILLION;
	state->model.gravity = (double)options.gravity / BILLION;
	state->model.speed = (double)options.speed / BILLION;
	state->model.stiffness = (double)options.stiffness / BILLION;
	state->model.damping = (double)options.damping / BILLION;
	state->model.floor = options.floor;
	state->model.springs = options.without != WITHOUT_SPRINGS;
	state->model.integration = options.without != WITHOUT_INTEGRATION;
	tire_model_settle(&state->model);
}

static int check_stability(const struct state *state)
{
	double least, most;

	if (tire_model_stable(&state->model, &least, &most))
		return 0;
	return error_line(
		STATUS_USAGE, "unstable",
		"stiffness %g N/m with damping %g N s/m is unstable with steps of 10 ms: with %lld nodes of %g kg in total, the damping must be at most %g and at least %g (stiffness x 10 ms), so the stiffness can be at most %g; leave both out to get values that fit",
		state->model.stiffness, state->model.damping, (long long)state->model.nodes,
		state->model.mass, most, least, most / TIRE_STEP_S);
}

static int check(struct harness *h)
{
	int status = check_nodes();

	if (status)
		return status;
	if (options.free_running && options.solver != SOLVER_SEMAPHORE)
		return usage_error("--free-running works only with --solver semaphore");
	if (options.state && options.without != WITHOUT_NONE)
		return usage_error(
			"with --without %s nothing is simulated, so there is no final state; leave --state out",
			without_names[options.without]);
	if (options.period_ns && options.period_ns < 1000)
		return error_line(STATUS_USAGE, "interval",
				  "a period of %lld ns is shorter than the shortest time that a thread can "
				  "sleep (1 us); give a longer one",
				  (long long)options.period_ns);
	if (options.period_ns && harness_options.count > INT64_MAX / 4 / options.period_ns)
		return usage_error("this many steps would take more than 70 years; give fewer");
	set_model(h->state);
	return check_stability(h->state);
}

static int check_threads(struct state *state, const struct probe_cpus *cpus)
{
	int64_t most = options.solver == SOLVER_HALO ? options.nodes / 2 : options.nodes;

	if (!tire_threads_read(options.threads, &cpus->measured, &state->plan.threads))
		return STATUS_USAGE;
	if (options.solver == SOLVER_SERIAL && state->plan.threads != 1)
		return usage_error(
			"%u threads are too many for --solver serial, which has one; use halo or semaphore",
			state->plan.threads);
	if (state->plan.threads > most)
		return usage_error("%u threads are more than %lld%s; use at most %lld threads, or more nodes",
				   state->plan.threads, (long long)most,
				   options.solver == SOLVER_HALO ? " pairs of nodes" : " nodes",
				   (long long)most);
	return 0;
}

static const struct tire_solver *the_solver(void)
{
	if (options.solver == SOLVER_HALO)
		return &tire_halo;
	if (options.solver == SOLVER_SERIAL)
		return &tire_serial;
	return options.free_running ? &tire_free_running : &tire_semaphore;
}

static int64_t whole_periods(int64_t ns)
{
	return ns / options.period_ns + (ns % options.period_ns != 0);
}

static void set_plan(struct state *state, unsigned int cpus)
{
	state->plan.solver = the_solver();
	state->plan.model = &state->model;
	state->plan.cpus = cpus;
	state->plan.free_running = options.free_running;
	state->plan.rests = harness_options.policy != POLICY_OTHER;
	state->plan.period_ns = options.period_ns;
	state->plan.steps = harness_options.count ? harness_options.count : INT64_MAX;
	state->plan.block = (BLOCK_NODES + options.nodes - 1) / options.nodes;
	state->plan.warm_up_ns = harness_options.warm_up_ns;
	state->plan.measured_ns = harness_options.duration_ns ? harness_options.duration_ns : INT64_MAX;
	if (!options.period_ns)
		return;
	state->plan.warm_up_ns = whole_periods(state->plan.warm_up_ns) * options.period_ns;
	if (harness_options.duration_ns)
		state->plan.steps = whole_periods(harness_options.duration_ns);
	state->plan.block = 1;
}

/* Check the memory first: if it is short, the kernel kills the process instead of refusing. */
static int check_memory(struct state *state)
{
	int64_t left = tire_memory_left();

	state->step_bytes = state->plan.solver->bytes(options.nodes, state->plan.threads);
	if (left < 0 || (int64_t)(state->step_bytes + tire_run_bytes()) < left)
		return 0;
	return error_line(
		STATUS_CANNOT_MEASURE, "memory",
		"%lld nodes need %zu MiB of locked memory, but only %lld MiB are free; use fewer nodes",
		(long long)options.nodes, (state->step_bytes + tire_run_bytes()) >> 20,
		(long long)(left >> 20));
}

/* Threads are spread over the CPUs. CPUs without a thread are not measured. */
static void place(struct state *state, struct probe_cpus *cpus)
{
	int cpu = -1;

	for (unsigned int i = 0; i < state->plan.threads; i++) {
		struct harness_thread *t = tire_run_thread(i);

		cpu = cpuset_next(&cpus->measured, (unsigned int)(cpu + 1));
		if (cpu < 0)
			cpu = cpuset_next(&cpus->measured, 0);
		harness_thread_on(t, cpu);
		state->threads[i] = t;
	}
	if (state->plan.threads < cpuset_count(&cpus->measured)) {
		cpuset_clear(&cpus->measured);
		for (unsigned int i = 0; i < state->plan.threads; i++)
			cpuset_add(&cpus->measured, (unsigned int)state->threads[i]->cpu);
	}
}

static bool set_series(struct harness *h)
{
	struct state *state = h->state;
	static const char *const timed[] = {"latency", "response", "slack"};
	struct histogram *overrun = options.period_ns ? memory_get(sizeof(*overrun)) : NULL;

	h->series_count = options.period_ns ? TIMED_METRICS : 1;
	state->all = memory_get(h->series_count * sizeof(*state->all));
	if (!state->all || (options.period_ns && !overrun))
		return false;
	for (unsigned int i = 0; i < h->series_count; i++) {
		state->all[i].id = i;
		state->all[i].metric = options.period_ns ? timed[i] : "step-time";
		state->all[i].negatives = options.period_ns && i == SLACK ? overrun : NULL;
		state->all[i].cpu = state->plan.threads == 1 ? state->threads[0]->cpu : -1;
		state->all[i].labels[0] = (struct label){"solver", solver_names[options.solver]};
		state->series[i] = &state->all[i];
		/* Threads that share a CPU cannot know which of them delayed another. */
		state->measurers[i] = state->plan.threads <= state->plan.cpus ? state->threads[0] : NULL;
	}
	h->series = state->series;
	h->measurers = state->measurers;
	return true;
}

static void feed_timed(struct state *state, const struct tire_sample *s, struct json *j)
{
	int64_t period_ns = options.period_ns;

	series_feed_timed(&state->all[LATENCY], s->time_ns, s->latency_ns, j);
	series_feed_timed(&state->all[RESPONSE], s->time_ns, s->response_ns, j);
	series_feed_timed(&state->all[SLACK], s->time_ns, period_ns - s->response_ns, j);
	/* A missed step would have begun when this step ended, and taken as long. */
	for (int64_t m = 1; m <= s->missed; m++) {
		int64_t release_ns = s->time_ns + m * period_ns, latency_ns = s->response_ns - m * period_ns;

		series_miss_timed(&state->all[LATENCY], release_ns, latency_ns, j);
		series_miss_timed(&state->all[RESPONSE], release_ns, latency_ns + s->step_ns, j);
	}
}

static bool drain(struct harness *h, struct json *j)
{
	struct state *state = h->state;
	struct tire_sample sample;
	bool alive = false;

	/* Take threads before samples, because what a thread stored before its end must be taken. */
	for (unsigned int i = 0; i < state->plan.threads; i++)
		alive |= !atomic_load(&state->threads[i]->done);
	while (tire_run_next(&sample)) {
		if (options.period_ns)
			feed_timed(state, &sample, j);
		else
			series_feed_timed(&state->all[STEP_TIME], sample.time_ns, sample.step_ns, j);
	}
	return alive;
}

static void timed_int(struct json *j, const char *key, int64_t value)
{
	if (options.period_ns)
		json_int(j, key, value);
	else
		json_null(j, key);
}

static void write_values(const struct state *state, const struct tire_books *books, struct json *j)
{
	struct usage sum = {0};
	double node_steps = (double)options.nodes * (double)books->steps;

	for (unsigned int i = 0; i < state->plan.threads; i++) {
		const struct usage *before = &state->threads[i]->before, *after = &state->threads[i]->after;

		sum.cpu_ns += after->cpu_ns - before->cpu_ns;
		sum.voluntary_switches += after->voluntary_switches - before->voluntary_switches;
		sum.involuntary_switches += after->involuntary_switches - before->involuntary_switches;
	}
	json_str(j, "mode", options.period_ns ? "real-time" : "real-fast");
	json_int(j, "nodes", options.nodes);
	json_int(j, "threads", state->plan.threads);
	json_int(j, "cpus", state->plan.cpus);
	json_int(j, "steps", books->steps);
	json_int(j, "wall_ns", books->wall_ns);
	json_int(j, "cpu_ns", sum.cpu_ns);
	json_real(j, "node_steps_per_s", books->wall_ns ? node_steps * BILLION / (double)books->wall_ns : 0);
	if (!RUNTIME_IS_COKERNEL) { /* a co-kernel does not distinguish or count them */
		json_int(j, "voluntary_switches", sum.voluntary_switches);
		json_int(j, "involuntary_switches", sum.involuntary_switches);
	} else {
		json_null(j, "voluntary_switches");
		json_null(j, "involuntary_switches");
	}
	if (tire_run_barrier_ns() < 0)
		json_null(j, "barrier_ns");
	else
		json_real(j, "barrier_ns", tire_run_barrier_ns());
	json_int(j, "block", state->plan.block);
	json_int(j, "step_bytes", (int64_t)state->step_bytes);
	json_int(j, "rest_ns", books->rest_ns);
	json_int(j, "frames", tire_frame_counted()->copied);
	timed_int(j, "frames_late", tire_frame_counted()->late);
	timed_int(j, "activations", books->activations);
	timed_int(j, "deadline_missed", books->late + books->missed);
	timed_int(j, "late", books->late);
	timed_int(j, "missed", books->missed);
	json_int(j, "step_min_ns", books->shortest_ns);
	json_int(j, "step_max_ns", books->longest_ns);
	json_real(j, "stiffness", state->model.stiffness);
	json_real(j, "damping", state->model.damping);
	json_str(j, "kernel", options.solver == SOLVER_HALO ? tire_kernel(0)->name : "scalar");
}

static void conclude(struct harness *h, struct json *j)
{
	const struct tire_books *books = tire_run_books();

	stream_result(j, "tire");
	json_str(j, "solver", solver_names[options.solver]);
	json_close(j, '}');
	json_open(j, "values", '{');
	write_values(h->state, books, j);
	stream_result_end(j);
	if (options.period_ns && books->steps && books->shortest_ns > options.period_ns)
		stream_mark(
			j, "period-short", SEVERITY_NOTE, -1,
			"a step takes at least %lld us, and %lld us on average; this is longer than the period of %lld us, so every deadline is missed; use a longer period, fewer nodes or more threads",
			(long long)(books->shortest_ns / 1000),
			(long long)(books->wall_ns / books->steps / 1000),
			(long long)(options.period_ns / 1000));
	if (books->overload)
		stream_mark(
			j, "overload", SEVERITY_NOTE, -1,
			"the probe ended early, because the steps left less than 3 %% of the time to the rest of the machine for 2 s; a step takes %lld us on average, and the period is %lld us",
			(long long)(books->steps ? books->wall_ns / books->steps / 1000 : 0),
			(long long)(options.period_ns / 1000));
}

static int prepare_probe(struct harness *h)
{
	struct state *state = h->state;
	int status = check_threads(state, h->cpus);

	if (status)
		return status;
	set_plan(state, cpuset_count(&h->cpus->measured));
	status = check_memory(state);
	if (!status)
		status = tire_run_make(&state->plan);
	if (status)
		return status;
	place(state, h->cpus);
	if (!set_series(h))
		return harness_no_memory();
	h->threads = state->threads;
	h->thread_count = state->plan.threads;
	return 0;
}

static void begin(struct harness *h)
{
	struct state *state = h->state;
	int64_t start_ns = clock_now_ns(CLOCK_MONOTONIC) + LEAD_NS, measured_ns = INT64_MAX;
	int64_t warm_up_ns = tire_run_begin(start_ns) - start_ns, length_ns = state->plan.measured_ns;

	/* In real-fast mode, it ends with a step, a moment after its time. */
	if (options.period_ns && state->plan.steps != INT64_MAX)
		length_ns = measured_ns = state->plan.steps * options.period_ns;
	for (unsigned int i = 0; i < h->series_count; i++)
		series_timed(&state->all[i], start_ns, warm_up_ns, measured_ns);
	harness_go(h);
	harness_watch(h, length_ns == INT64_MAX ? INT64_MAX : warm_up_ns + length_ns);
}

/* Says why it ended, if the harness does not know this. */
static const char *reason(void)
{
	if (tire_run_books()->overload)
		return "overload";
	return harness_options.count ? "count" : "duration";
}

static int run(struct harness *h)
{
	struct state *state = h->state;

	begin(h);
	while (drain(h, &h->j)) {
		harness_pause(tire_frame_exchange(&h->j, DRAIN_NS));
		harness_stopping(h);
	}
	drain(h, &h->j);
	for (unsigned int i = 0; i < h->series_count; i++) {
		state->all[i].lost = tire_run_books()->lost;
		state->all[i].reached_ns = tire_run_books()->end_ns;
	}
	if (options.state && !tire_state_write(options.state, &state->plan, tire_run_books()->steps))
		return error_line(STATUS_CANNOT_MEASURE, "output", "the state cannot be written to %s: %s",
				  options.state, strerror(errno));
	return harness_finish(h, reason());
}

static int verb_tire(int argc, char **argv)
{
	static struct harness harness = {
		.table = table,
		.state_size = sizeof(struct state),
		.check = check,
		.prepare = prepare_probe,
		.run = run,
		.conclude = conclude,
		.hog_percent = TAKE_ALL,
	};

	harness_options.priority = 80;
	return harness_run(&harness, argc, argv);
}

PROBE("tire", verb_tire, "a physical simulation, as fast as possible or one step in each period")
