// SPDX-License-Identifier: MIT
/*
 * response: a master makes an edge on a line, and a slave answers with another edge. The probe measures
 * the time from stimulus to answer (Brown & Martin 2010, sec. 2.2 and 3.4; Adam et al. 2021, algorithm
 * A1). ext/signal/engine/response has both tasks and their answers.
 */
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/tracefs.h"
#include "base/verbs.h"
#include "ext/signal/engine/path/path.h"
#include "ext/signal/engine/path/wire.h"
#include "ext/signal/engine/response/kernel_slave.h"
#include "ext/signal/engine/response/master.h"
#include "ext/signal/engine/response/parts.h"
#include "ext/signal/engine/response/response_reference.h"
#include "ext/signal/engine/response/responses.h"
#include "ext/signal/engine/response/slave.h"
#include "harness/harness.h"
#include "harness/peer_process.h"

#define LEAD_NS (NS_PER_S / 50)
#define DRAIN_MAX_NS (NS_PER_S / 20)

static struct {
	const char *trace_instance;
	int64_t interval_ns, interval_min_ns, interval_max_ns, timeout_ns, seed;
} options = {
	.interval_min_ns = 3000,
	.interval_max_ns = 7071000,
	.timeout_ns = NS_PER_S / 10,
	.seed = -1,
};

/* As enum rtgauge_context. */
static const char *const context_names[] = {"irq", "thread", "irq-thread", "irq-default", NULL};

static const struct option_entry table[] = {
	{.shared = roles_options_table},
	{.shared = roles_option_context, .choices = context_names},
	{.name = "interval-ns",
	 .kind = OPTION_INT,
	 .value = &options.interval_ns,
	 .min = 0,
	 .max = 3600 * NS_PER_S,
	 .help = "time from one stimulus to the next; 0: draw it at random"},
	{.name = "interval-min-ns",
	 .kind = OPTION_INT,
	 .value = &options.interval_min_ns,
	 .min = 1,
	 .max = 3600 * NS_PER_S,
	 .help = "shortest random time from an answer to the next stimulus"},
	{.name = "interval-max-ns",
	 .kind = OPTION_INT,
	 .value = &options.interval_max_ns,
	 .min = 1,
	 .max = 3600 * NS_PER_S,
	 .help = "longest random time from an answer to the next stimulus"},
	{.name = "timeout-ns",
	 .kind = OPTION_INT,
	 .value = &options.timeout_ns,
	 .min = 1000000,
	 .max = 3600 * NS_PER_S,
	 .help = "how long to wait for an answer before it counts as lost"},
	{.name = "seed",
	 .kind = OPTION_INT,
	 .value = &options.seed,
	 .min = -1,
	 .max = INT64_MAX,
	 .help = "seed of the random times; -1: let the engine choose one"},
	{.name = "trace-instance",
	 .kind = OPTION_TEXT,
	 .value = &options.trace_instance,
	 .help = "split the response into parts by tracepoints, which this instance of tracefs records"},
	{.shared = harness_option_cpu},
	{.shared = harness_option_count,
	 .help = "number of stimuli in the measured phase, instead of a duration"},
	{.shared = harness_options_measuring},
	{.shared = explain_options_table},
	{0},
};

struct state {
	struct master master;
	struct slave *slave;
	struct kernel_slave kernel_slave; /* the answering task, if it is in the kernel */
	struct response_reference reference;
	struct parts parts;
	struct responses responses;
	struct harness_thread answering; /* the slave, if this engine has only that role */
	struct path_end ends[2];
	int64_t end_ns;
	struct series *all_series[1 + PARTS + KERNEL_STEPS + RESPONSE_REFERENCE_SERIES];
	struct harness_thread *threads[1];
	struct harness_thread *measurers[1 + PARTS + KERNEL_STEPS + RESPONSE_REFERENCE_SERIES];
};

static void answer(struct harness_thread *thread)
{
	const struct state *state = container_of(thread, struct state, answering);

	usage_read(thread->schedstat, &thread->before);
	slave_answer(state->slave);
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = true;
}

static bool take_master(struct harness *h, struct json *j)
{
	struct state *state = h->state;
	bool done = atomic_load(&state->threads[0]->done);

	responses_take_stimuli(&state->responses, &state->master, state->slave, options.timeout_ns, j);
	if (role_options.space == SPACE_KERNEL)
		kernel_slave_take(&state->kernel_slave, NULL, j);
	if (state->responses.reference)
		response_reference_take(&state->reference, false, j);
	if (state->responses.parts)
		parts_take(state->responses.parts, done, j);
	master_give_up(&state->master, options.timeout_ns);
	if (role_options.role == PATH_BOTH && role_options.space == SPACE_USER &&
	    !peer_process_lives(h->peer))
		harness_end_by(h, "slave-died");
	return !done;
}

/* Runs only the slave in the kernel, until the time or the count is over. */
static bool take_kernel_slave(struct harness *h, struct json *j)
{
	struct state *state = h->state;
	bool goes_on = !atomic_load(&harness_shared.stop);
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	if (!goes_on)
		kernel_slave_stop(&state->kernel_slave);
	kernel_slave_take(&state->kernel_slave, state->responses.series, j);
	state->responses.series->reached_ns = now_ns;
	if (goes_on)
		roles_end_alone(h, state->responses.series, state->end_ns, false);
	return goes_on;
}

static bool take_slave(struct harness *h, struct json *j)
{
	struct state *state = h->state;
	bool done = atomic_load(&state->threads[0]->done);
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	responses_take_answers(&state->responses, state->slave, j);
	if (state->responses.parts)
		parts_take(state->responses.parts, done, j);
	state->responses.series->reached_ns = now_ns;
	if (!done)
		roles_end_alone(h, state->responses.series, state->end_ns, atomic_load(&state->slave->over));
	return !done;
}

static void write_counts(const struct master_counts *c, struct json *j, const char *role)
{

	stream_result(j, "signal");
	json_str(j, "role", role);
	json_close(j, '}');
	json_open(j, "values", '{');
	json_int(j, "stimuli", c->stimuli);
	json_int(j, "answers", c->answers);
	json_int(j, "lost", c->lost);
	json_int(j, "skipped", c->skipped);
	json_int(j, "not-made", c->not_made);
	json_int(j, "late-by-max-ns", c->late_by_max_ns);
	json_int(j, "early-answer", c->early);
	json_int(j, "double-edge", c->doubled);
	json_int(j, "late-answer", c->late);
	stream_result_end(j);
}

static void conclude(struct harness *h, struct json *j)
{
	const struct state *state = h->state;

	if (options.trace_instance)
		parts_conclude(&state->parts, j);
	if (role_options.space == SPACE_KERNEL)
		kernel_slave_conclude(&state->kernel_slave, j);
	if (state->responses.reference)
		wire_conclude(state->reference.matched, state->reference.unmatched, "responses", j);
	if (role_options.role == PATH_SLAVE) {
		int64_t answers = state->slave ? atomic_load(&state->slave->answers)
					       : (int64_t)state->kernel_slave.status.samples;
		int64_t doubled = state->slave ? atomic_load(&state->slave->double_edges)
					       : (int64_t)state->kernel_slave.status.missed;

		stream_result(j, "signal");
		json_str(j, "role", "slave");
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "answers", answers);
		json_int(j, "double-edge", doubled);
		stream_result_end(j);
		if (!answers)
			roles_mark_no_stimulus("stimulus", j);
		return;
	}
	write_counts(&state->master.counts[1], j, "master");
	roles_mark_died(h, "slave", j);
	if (state->master.counts[1].not_made)
		stream_mark(j, "master-late",
			    state->master.counts[1].not_made > state->master.counts[1].stimuli / 100
				    ? SEVERITY_DOUBTFUL
				    : SEVERITY_NOTE,
			    0,
			    "the master did not send %lld stimuli, because it was late by up to %.3f ms; "
			    "they say nothing about the slave",
			    (long long)state->master.counts[1].not_made,
			    (double)state->master.counts[1].late_by_max_ns / (NS_PER_S / 1000));
	if (state->master.counts[1].early || state->master.counts[1].doubled)
		stream_mark(
			j, "noise", SEVERITY_DOUBTFUL, 0,
			"%lld answers came before their stimulus and %lld stimuli had more than one answer: the line is noisy, or something else uses it",
			(long long)state->master.counts[1].early, (long long)state->master.counts[1].doubled);
}

static int check(struct harness *h)
{
	(void)h;
	if (!options.interval_ns && options.interval_min_ns > options.interval_max_ns)
		return error_line(STATUS_USAGE, "interval",
				  "--interval-min-ns (%lld) is longer than --interval-max-ns (%lld); give a "
				  "shorter one",
				  (long long)options.interval_min_ns, (long long)options.interval_max_ns);
	if (options.trace_instance && role_options.role == PATH_MASTER)
		return usage_error("--trace-instance works only for the slave; give --role slave or both");
	if (options.trace_instance && role_options.space == SPACE_KERNEL)
		return usage_error(
			"--trace-instance works only in user space; leave it out, because in the kernel "
			"each step is time-stamped anyway");
	if (options.trace_instance && !tracefs_is_name(options.trace_instance))
		return usage_error("--trace-instance %.80s: give at most 64 letters, digits, - and _",
				   options.trace_instance);
	if (options.seed < 0) {
		uint64_t any = 0;

		if (getrandom(&any, sizeof(any), GRND_NONBLOCK) != (ssize_t)sizeof(any))
			any = (uint64_t)clock_now_ns(CLOCK_MONOTONIC);
		options.seed = (int64_t)(any >> 2);
	}
	return 0;
}

/* Starts the slave if this engine has that role. */
static int make_slave(const struct harness *h, int cpu)
{
	struct state *state = h->state;

	if (role_options.role == PATH_MASTER || role_options.space == SPACE_KERNEL)
		return 0;
	state->slave = slave_new(&state->ends[PATH_SLAVE],
				 role_options.role == PATH_SLAVE || options.trace_instance);
	if (!state->slave)
		return harness_no_memory();
	return role_options.role == PATH_BOTH
		       ? peer_process_start(h->peer, cpu, slave_join, slave_answer, state->slave)
		       : 0;
}

static bool make_master(struct state *state)
{
	state->master.random = (uint64_t)options.seed;
	state->master.due.interval_ns = options.interval_ns;
	state->master.interval_min_ns = options.interval_min_ns;
	state->master.interval_max_ns = options.interval_max_ns;
	state->master.end = &state->ends[PATH_MASTER];
	state->master.tells_over = state->master.end->kind == &path_udp && role_options.role == PATH_MASTER;
	return role_options.role == PATH_SLAVE || master_make(&state->master);
}

static void make_thread(struct state *state, const int cpu[2])
{
	bool alone = role_options.role == PATH_SLAVE;
	struct harness_thread *t = alone ? &state->answering : &state->master.thread;

	state->answering.measure = answer;
	harness_thread_on(t, cpu[alone ? PATH_SLAVE : PATH_MASTER]);
	state->threads[0] = state->measurers[0] = t;
}

static void show(struct harness *h, struct series *s)
{
	s->id = h->series_count;
	h->series[h->series_count++] = s;
}

static bool make_series(struct harness *h, int own_cpu)
{
	struct state *state = h->state;
	bool alone = role_options.role == PATH_SLAVE;
	struct series *s = memory_get(sizeof(*s));

	if (!s)
		return false;
	s->metric = "response";
	s->cpu = alone && role_options.space == SPACE_KERNEL ? state->kernel_slave.cpu : own_cpu;
	s->labels[0] = (struct label){"role", alone ? "slave" : "master"};
	if (alone)
		s->labels[1] = (struct label){
			"from",
			role_options.space == SPACE_KERNEL
				? (kernel_slave_stimulates(&state->kernel_slave) ? "stimulus" : "interrupt")
			: state->ends[PATH_SLAVE].kind->stamped ? "kernel-time-stamp"
								: "wake-up"};
	state->responses.series = s;
	show(h, s);
	for (int i = 0; i < KERNEL_STEPS; i++) {
		if (state->kernel_slave.known[i])
			show(h, &state->kernel_slave.steps[i]);
	}
	for (int i = 0; state->responses.reference && i < RESPONSE_REFERENCE_SERIES; i++)
		show(h, &state->reference.series[i]);
	return true;
}

/* Opens the path and, if the slave is in the kernel, the slave. */
static int open_path(struct state *state, int slave_cpu)
{
	struct path_kernel_end end = {.task = PATH_SLAVE};
	enum path_role role = (enum path_role)role_options.role;
	int status;

	if (role_options.space == SPACE_USER)
		return path_open(role_options.path, role, true, state->ends);
	status = path_open_for_kernel(role_options.path, role, true, &end, state->ends);
	return status ? status : kernel_slave_open(&state->kernel_slave, &end, slave_cpu, wire_is_open());
}

static bool make_reference(struct state *state, int cpu)
{
	if (!wire_is_open())
		return true;
	state->responses.reference = &state->reference;
	state->reference.timeout_ns = options.timeout_ns;
	state->reference.interval_ns = options.interval_ns;
	state->reference.slave = role_options.space == SPACE_KERNEL ? &state->kernel_slave : NULL;
	return response_reference_make(&state->reference, cpu);
}

/* Opens both ends of the path, and assigns their tasks to the chosen CPUs. Returns 0, or the exit status
 * after an `error` line. */
static int prepare_ends(const struct harness *h, int cpu[2])
{
	struct state *state = h->state;
	int status = roles_cpus(h->cpus, cpu);

	if (status)
		return status;
	status = open_path(state, cpu[PATH_SLAVE]);
	if (status)
		return status;
	status = make_slave(h, cpu[PATH_SLAVE]);
	return status ? status : roles_join(state->ends);
}

static int prepare_probe(struct harness *h)
{
	struct state *state = h->state;
	int cpu[2], own_cpu, status = prepare_ends(h, cpu);

	if (status)
		return status;
	h->threads = state->threads;
	h->series = state->all_series;
	h->measurers = state->measurers;
	own_cpu = cpu[role_options.role == PATH_SLAVE ? PATH_SLAVE : PATH_MASTER];
	if (role_options.role == PATH_SLAVE && role_options.space == SPACE_KERNEL)
		h->thread_count = 0;
	else
		make_thread(state, cpu);
	return make_master(state) && make_reference(state, own_cpu) && make_series(h, own_cpu)
		       ? 0
		       : harness_no_memory();
}

/* Tracing the slave begins before it is armed, so that nothing changes during the measurement. */
static int begin_trace(struct harness *h)
{
	struct state *state = h->state;
	bool both = role_options.role == PATH_BOTH;
	int status;

	if (!options.trace_instance)
		return 0;
	if (!parts_choose(&state->parts, &state->ends[PATH_SLAVE], both,
			  both ? h->peer->cpu : state->threads[0]->cpu))
		return harness_no_memory();
	state->responses.parts = &state->parts;
	status = trace_open(&state->parts.trace, options.trace_instance,
			    both ? h->peer->pid : state->threads[0]->tid, state->parts.interrupt);
	for (int i = 0; i < PARTS && !status; i++) {
		if (!state->parts.known[i])
			continue;
		state->parts.series[i].id = h->series_count;
		h->series[h->series_count++] = &state->parts.series[i];
	}
	return status;
}

static int run(struct harness *h)
{
	struct state *state = h->state;
	int64_t measured_ns = harness_options.duration_ns ? harness_options.duration_ns : INT64_MAX;
	int64_t pause_ns = options.timeout_ns / 4 < DRAIN_MAX_NS ? options.timeout_ns / 4 : DRAIN_MAX_NS;
	int status = state->responses.reference ? wire_begin() : 0;

	if (role_options.space == SPACE_KERNEL && kernel_slave_stimulates(&state->kernel_slave)) {
		state->kernel_slave.parameters.interval_min_ns =
			(uint64_t)(options.interval_ns ? options.interval_ns : options.interval_min_ns);
		state->kernel_slave.parameters.interval_max_ns =
			(uint64_t)(options.interval_ns ? options.interval_ns : options.interval_max_ns);
		state->kernel_slave.parameters.seed = (uint64_t)options.seed;
	}
	if (!status && role_options.space == SPACE_KERNEL)
		status = kernel_slave_start(&state->kernel_slave);
	if (status)
		return status;
	state->master.start_ns = clock_now_ns(CLOCK_MONOTONIC) + LEAD_NS;
	state->master.due.measured_ns = state->master.start_ns + harness_options.warm_up_ns;
	state->end_ns = measured_ns == INT64_MAX ? INT64_MAX : state->master.due.measured_ns + measured_ns;
	state->master.due.end_ns = state->end_ns;
	for (unsigned int i = 0; i < h->series_count; i++)
		series_timed(state->all_series[i], state->master.start_ns, harness_options.warm_up_ns,
			     measured_ns);
	harness_go(h);
	if (h->thread_count)
		harness_watch(h, measured_ns == INT64_MAX ? INT64_MAX
							  : harness_options.warm_up_ns + measured_ns);
	harness_drain(h,
		      role_options.role != PATH_SLAVE	   ? take_master
		      : role_options.space == SPACE_KERNEL ? take_kernel_slave
							   : take_slave,
		      pause_ns);
	if (role_options.space == SPACE_KERNEL) {
		kernel_slave_stop(&state->kernel_slave);
		kernel_slave_take(&state->kernel_slave,
				  role_options.role == PATH_SLAVE ? state->responses.series : NULL, &h->j);
	}
	if (state->responses.reference) {
		wire_end();
		response_reference_take(&state->reference, true, &h->j);
	}
	peer_process_end(h->peer);
	if (options.trace_instance)
		trace_close(&state->parts.trace);
	if (state->master.nobody && role_options.role == PATH_BOTH && role_options.space == SPACE_KERNEL)
		return error_line(
			STATUS_CANNOT_MEASURE, "no-answer",
			"the kernel module did not answer on %.100s: wire the lines together, and check "
			"that nothing with a higher priority takes its CPU",
			role_options.path);
	if (state->master.nobody && role_options.role == PATH_BOTH)
		return error_line(
			STATUS_CANNOT_MEASURE, "no-answer",
			"the slave on CPU %d did not answer on %.100s: check that nothing with a higher "
			"priority takes its CPU, and that the lines are wired together",
			h->peer->cpu, role_options.path);
	if (state->master.nobody)
		return error_line(
			STATUS_CANNOT_MEASURE, "no-answer",
			"nobody answers on %.100s; start the slave first, with --role slave and the same "
			"path",
			role_options.path);
	if (state->master.error || (state->slave && atomic_load(&state->slave->error)))
		return error_line(STATUS_CANNOT_MEASURE, "path", "%s failed during the measurement: %s",
				  role_options.path,
				  strerror(state->master.error ? state->master.error
							       : atomic_load(&state->slave->error)));
	state->responses.series->lost = state->master.not_kept;
	if (role_options.role == PATH_SLAVE)
		state->responses.series->lost += state->slave ? atomic_load(&state->slave->not_kept)
							      : (int64_t)state->kernel_slave.status.lost;
	return harness_finish(h, harness_options.count ? "count" : "duration");
}

/* Returns the task that answers, the slave. A master alone has its slave elsewhere, so only the master's
 * own wake-up can be seen. */
static bool explained(const struct harness *h, const struct series *s, struct explained *who)
{
	const struct state *state = h->state;

	if (s != state->responses.series || role_options.space == SPACE_KERNEL)
		return false;
	*who = role_options.role == PATH_BOTH
		       ? (struct explained){.cpu = h->peer->cpu, .tid = h->peer->pid}
		       : (struct explained){.cpu = state->threads[0]->cpu, .tid = state->threads[0]->tid};
	return true;
}

static int verb_response(int argc, char **argv)
{
	static struct harness harness = {
		.table = table,
		.state_size = sizeof(struct state),
		.check = check,
		.prepare = prepare_probe,
		.started = begin_trace,
		.run = run,
		.conclude = conclude,
		.explained = explained,
	};

	return roles_run(&harness, argc, argv);
}

PROBE("response", verb_response, "time from a stimulus on a line until a task that waits for it has answered")
