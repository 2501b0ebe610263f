// SPDX-License-Identifier: MIT
/*
 * response: a master makes an edge on a line, a slave answers it with one of its own; from stimulus to answer
 * (Brown & Martin 2010, sec. 2.2 and 3.4; Adam et al. 2021, algorithm A1). The two and
 * what becomes of their answers are in engine/probes/response.
 */
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/tracefs.h"
#include "base/verbs.h"
#include "harness/harness.h"
#include "harness/peer_process.h"
#include "probes/response/kernel_slave.h"
#include "probes/response/master.h"
#include "probes/response/parts.h"
#include "probes/response/response_reference.h"
#include "probes/response/responses.h"
#include "probes/response/slave.h"
#include "signal/path.h"
#include "signal/wire.h"

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
	 .help = "from one stimulus to the next; 0: drawn at random"},
	{.name = "interval-min-ns",
	 .kind = OPTION_INT,
	 .value = &options.interval_min_ns,
	 .min = 1,
	 .max = 3600 * NS_PER_S,
	 .help = "from an answer to the next stimulus, drawn: from (3000)"},
	{.name = "interval-max-ns",
	 .kind = OPTION_INT,
	 .value = &options.interval_max_ns,
	 .min = 1,
	 .max = 3600 * NS_PER_S,
	 .help = "to (7071000)"},
	{.name = "timeout-ns",
	 .kind = OPTION_INT,
	 .value = &options.timeout_ns,
	 .min = 1000000,
	 .max = 3600 * NS_PER_S,
	 .help = "after which an answer is lost (100000000)"},
	{.name = "seed",
	 .kind = OPTION_INT,
	 .value = &options.seed,
	 .min = -1,
	 .max = INT64_MAX,
	 .help = "of the intervals that are drawn; -1: any"},
	{.name = "trace-instance",
	 .kind = OPTION_TEXT,
	 .value = &options.trace_instance,
	 .help = "take the response apart by tracepoints, in this instance of tracefs"},
	{.shared = harness_option_cpu},
	{.shared = harness_option_count, .help = "stimuli in the measured phase, instead of a duration"},
	{.shared = harness_options_measuring},
	{.shared = explain_options_table},
	{0},
};

static struct master master;
static struct slave *slave;
static struct kernel_slave kernel_slave; /* who answers, where that is in the kernel */
static struct response_reference reference;
static struct parts parts;
static struct responses responses;
static struct harness_thread answering; /* the slave, where this engine is nothing else */
static struct path_end ends[2];
static struct peer_process peer;
static int64_t end_ns;
static struct series *all_series[1 + PARTS + KERNEL_STEPS + RESPONSE_REFERENCE_SERIES];
static struct harness_thread *threads[1];
static struct harness_thread *measurers[1 + PARTS + KERNEL_STEPS + RESPONSE_REFERENCE_SERIES];
static struct harness harness;

static void answer(struct harness_thread *thread)
{
	usage_read(thread->schedstat, &thread->before);
	slave_answer(slave);
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = true;
}

static bool take_master(struct json *j)
{
	bool done = atomic_load(&threads[0]->done);

	responses_take_stimuli(&responses, &master, slave, options.timeout_ns, j);
	if (role_options.space == SPACE_KERNEL)
		kernel_slave_take(&kernel_slave, NULL, j);
	if (responses.reference)
		response_reference_take(&reference, false, j);
	if (responses.parts)
		parts_take(responses.parts, done, j);
	master_give_up(&master, options.timeout_ns);
	if (role_options.role == PATH_BOTH && role_options.space == SPACE_USER && !peer_process_lives(&peer))
		harness_end_by(&harness, "slave-died");
	return !done;
}

static int64_t measured_samples(void)
{
	const struct series *s = responses.series;

	return s->total.count + (s->measuring ? s->window.count : 0);
}

/* The slave in the kernel, alone: it goes on until the time or the count is over. */
static bool take_kernel_slave(struct json *j)
{
	bool goes_on = !atomic_load(&harness_shared.stop);
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	if (!goes_on)
		kernel_slave_stop(&kernel_slave);
	kernel_slave_take(&kernel_slave, responses.series, j);
	responses.series->reached_ns = now_ns;
	if (goes_on && now_ns >= end_ns)
		harness_end_by(&harness, "duration");
	else if (goes_on && harness_options.count && measured_samples() >= harness_options.count)
		harness_end_by(&harness, "count");
	return goes_on;
}

static bool take_slave(struct json *j)
{
	bool done = atomic_load(&threads[0]->done);
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	responses_take_answers(&responses, slave, j);
	if (responses.parts)
		parts_take(responses.parts, done, j);
	responses.series->reached_ns = now_ns;
	if (!done && now_ns >= end_ns)
		harness_end_by(&harness, "duration");
	else if (!done && (atomic_load(&slave->over) ||
			   (harness_options.count && measured_samples() >= harness_options.count)))
		harness_end_by(&harness, "count");
	return !done;
}

static void write_counts(struct json *j, const char *role)
{
	const struct master_counts *c = &master.counts[1];

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

static void conclude(struct json *j)
{
	if (options.trace_instance)
		parts_conclude(&parts, j);
	if (role_options.space == SPACE_KERNEL)
		kernel_slave_conclude(&kernel_slave, j);
	if (responses.reference)
		wire_conclude(reference.matched, reference.unmatched, "responses", j);
	if (role_options.role == PATH_SLAVE) {
		int64_t answers = slave ? atomic_load(&slave->answers) : (int64_t)kernel_slave.status.samples;
		int64_t doubled =
			slave ? atomic_load(&slave->double_edges) : (int64_t)kernel_slave.status.missed;

		stream_result(j, "signal");
		json_str(j, "role", "slave");
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "answers", answers);
		json_int(j, "double-edge", doubled);
		stream_result_end(j);
		if (!answers)
			stream_mark(
				j, "no-stimulus", SEVERITY_INVALID, 0,
				"no stimulus came on %s: is the master running, and is its line this one?",
				role_options.path);
		return;
	}
	write_counts(j, "master");
	if (peer.died[0])
		stream_mark(j, "slave-died", SEVERITY_INVALID, -1, "the slave %s while it was needed",
			    peer.died);
	if (master.counts[1].not_made)
		stream_mark(
			j, "master-late",
			master.counts[1].not_made > master.counts[1].stimuli / 100 ? SEVERITY_DOUBTFUL
										   : SEVERITY_NOTE,
			0,
			"%lld stimuli were not made: the master itself came too late for them, by up to %lld ns; the slave has not lost them, and was not tested by them",
			(long long)master.counts[1].not_made, (long long)master.counts[1].late_by_max_ns);
	if (master.counts[1].early || master.counts[1].doubled)
		stream_mark(
			j, "noise", SEVERITY_DOUBTFUL, 0,
			"%lld answers came before their stimulus and %lld stimuli had more than one answer: the line is noisy, or is somebody else's, too",
			(long long)master.counts[1].early, (long long)master.counts[1].doubled);
}

static int check(struct harness *h)
{
	(void)h;
	if (!options.interval_ns && options.interval_min_ns > options.interval_max_ns)
		return error_line(STATUS_USAGE, "interval",
				  "--interval-min-ns (%lld) is longer than --interval-max-ns (%lld)",
				  (long long)options.interval_min_ns, (long long)options.interval_max_ns);
	if (options.trace_instance && role_options.role == PATH_MASTER)
		return usage_error("--trace-instance is of the slave: --role slave or both");
	if (options.trace_instance && role_options.space == SPACE_KERNEL)
		return usage_error(
			"--trace-instance is of a slave in user space; in the kernel each step is time-stamped anyway");
	if (options.trace_instance && !tracefs_is_name(options.trace_instance))
		return usage_error("--trace-instance %.80s: letters, digits, - and _, at most 64",
				   options.trace_instance);
	if (options.seed < 0) {
		uint64_t any = 0;

		if (getrandom(&any, sizeof(any), GRND_NONBLOCK) != (ssize_t)sizeof(any))
			any = (uint64_t)clock_now_ns(CLOCK_MONOTONIC);
		options.seed = (int64_t)(any >> 2);
	}
	return 0;
}

/* The slave where this engine has that role, and the peer that it then is. */
static int make_slave(int cpu)
{
	if (role_options.role == PATH_MASTER || role_options.space == SPACE_KERNEL)
		return 0;
	slave = slave_new(&ends[PATH_SLAVE], role_options.role == PATH_SLAVE || options.trace_instance);
	if (!slave)
		return harness_no_memory();
	return role_options.role == PATH_BOTH
		       ? peer_process_start(&peer, cpu, slave_join, slave_answer, slave)
		       : 0;
}

static bool make_master(void)
{
	master.random = (uint64_t)options.seed;
	master.due.interval_ns = options.interval_ns;
	master.interval_min_ns = options.interval_min_ns;
	master.interval_max_ns = options.interval_max_ns;
	master.end = &ends[PATH_MASTER];
	master.tells_over = master.end->kind == &path_udp && role_options.role == PATH_MASTER;
	return role_options.role == PATH_SLAVE || master_make(&master);
}

static void make_thread(const int cpu[2])
{
	bool alone = role_options.role == PATH_SLAVE;
	struct harness_thread *t = alone ? &answering : &master.thread;

	answering.measure = answer;
	t->cpu = cpu[alone ? PATH_SLAVE : PATH_MASTER];
	t->policy = (enum policy)harness_options.policy;
	t->priority = (int)harness_options.priority;
	threads[0] = measurers[0] = t;
}

static void show(struct harness *h, struct series *s)
{
	s->id = h->series_count;
	all_series[h->series_count++] = s;
}

static bool make_series(struct harness *h, int own_cpu)
{
	bool alone = role_options.role == PATH_SLAVE;
	struct series *s = memory_get(sizeof(*s));

	if (!s)
		return false;
	s->metric = "response";
	s->cpu = alone && role_options.space == SPACE_KERNEL ? kernel_slave.cpu : own_cpu;
	s->labels[0] = (struct label){"role", alone ? "slave" : "master"};
	if (alone)
		s->labels[1] = (struct label){
			"from", role_options.space == SPACE_KERNEL
					? (kernel_slave_stimulates(&kernel_slave) ? "stimulus" : "interrupt")
				: ends[PATH_SLAVE].kind->stamped ? "kernel-time-stamp"
								 : "wake-up"};
	responses.series = s;
	show(h, s);
	for (int i = 0; i < KERNEL_STEPS; i++) {
		if (kernel_slave.known[i])
			show(h, &kernel_slave.steps[i]);
	}
	for (int i = 0; responses.reference && i < RESPONSE_REFERENCE_SERIES; i++)
		show(h, &reference.series[i]);
	return true;
}

/* The path, and in the kernel the slave. */
static int open_path(int slave_cpu)
{
	struct path_kernel_end end = {.task = PATH_SLAVE};
	enum path_role role = (enum path_role)role_options.role;
	int status;

	if (role_options.space == SPACE_USER)
		return path_open(role_options.path, role, true, ends);
	status = path_open_for_kernel(role_options.path, role, true, &end, ends);
	return status ? status : kernel_slave_open(&kernel_slave, &end, slave_cpu, wire_is_open());
}

static bool make_reference(int cpu)
{
	if (!wire_is_open())
		return true;
	responses.reference = &reference;
	reference.timeout_ns = options.timeout_ns;
	reference.interval_ns = options.interval_ns;
	reference.slave = role_options.space == SPACE_KERNEL ? &kernel_slave : NULL;
	return response_reference_make(&reference, cpu);
}

/* Both ends of the path and who is at them, on CPUs that are chosen. 0, or the exit status after an `error`
 * line. */
static int prepare_ends(const struct harness *h, int cpu[2])
{
	int status = roles_cpus(h->cpus, cpu);

	if (status)
		return status;
	status = open_path(cpu[PATH_SLAVE]);
	if (status)
		return status;
	status = make_slave(cpu[PATH_SLAVE]);
	return status ? status : roles_join(ends);
}

static int prepare_probe(struct harness *h)
{
	int cpu[2], own_cpu, status = prepare_ends(h, cpu);

	if (status)
		return status;
	own_cpu = cpu[role_options.role == PATH_SLAVE ? PATH_SLAVE : PATH_MASTER];
	if (role_options.role == PATH_SLAVE && role_options.space == SPACE_KERNEL)
		h->thread_count = 0;
	else
		make_thread(cpu);
	return make_master() && make_reference(own_cpu) && make_series(h, own_cpu) ? 0 : harness_no_memory();
}

/* The slave is traced from before it is armed, so that nothing changes while it is measured. */
static int begin_trace(struct harness *h)
{
	bool both = role_options.role == PATH_BOTH;
	int status;

	if (!options.trace_instance)
		return 0;
	if (!parts_choose(&parts, &ends[PATH_SLAVE], both, both ? peer.cpu : threads[0]->cpu))
		return harness_no_memory();
	responses.parts = &parts;
	status = trace_open(options.trace_instance, both ? peer.pid : threads[0]->tid, parts.interrupt);
	for (int i = 0; i < PARTS && !status; i++) {
		if (!parts.known[i])
			continue;
		parts.series[i].id = h->series_count;
		all_series[h->series_count++] = &parts.series[i];
	}
	return status;
}

static int run(struct harness *h)
{
	int64_t measured_ns = harness_options.duration_ns ? harness_options.duration_ns : INT64_MAX;
	int64_t pause_ns = options.timeout_ns / 4 < DRAIN_MAX_NS ? options.timeout_ns / 4 : DRAIN_MAX_NS;
	int status = responses.reference ? wire_begin() : 0;

	if (role_options.space == SPACE_KERNEL && kernel_slave_stimulates(&kernel_slave)) {
		kernel_slave.parameters.interval_min_ns =
			(uint64_t)(options.interval_ns ? options.interval_ns : options.interval_min_ns);
		kernel_slave.parameters.interval_max_ns =
			(uint64_t)(options.interval_ns ? options.interval_ns : options.interval_max_ns);
		kernel_slave.parameters.seed = (uint64_t)options.seed;
	}
	if (!status && role_options.space == SPACE_KERNEL)
		status = kernel_slave_start(&kernel_slave);
	if (status)
		return status;
	master.start_ns = clock_now_ns(CLOCK_MONOTONIC) + LEAD_NS;
	master.due.measured_ns = master.start_ns + harness_options.warm_up_ns;
	end_ns = measured_ns == INT64_MAX ? INT64_MAX : master.due.measured_ns + measured_ns;
	master.due.end_ns = end_ns;
	for (unsigned int i = 0; i < h->series_count; i++)
		series_timed(all_series[i], master.start_ns, harness_options.warm_up_ns, measured_ns);
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
		kernel_slave_stop(&kernel_slave);
		kernel_slave_take(&kernel_slave, role_options.role == PATH_SLAVE ? responses.series : NULL,
				  &h->j);
	}
	if (responses.reference) {
		wire_end();
		response_reference_take(&reference, true, &h->j);
	}
	peer_process_end(&peer);
	if (options.trace_instance)
		trace_close();
	if (master.nobody && role_options.role == PATH_BOTH && role_options.space == SPACE_KERNEL)
		return error_line(
			STATUS_CANNOT_MEASURE, "no-answer",
			"the kernel module never answered on %.100s: the lines are not wired together, or something of a higher priority takes its CPU",
			role_options.path);
	if (master.nobody && role_options.role == PATH_BOTH)
		return error_line(
			STATUS_CANNOT_MEASURE, "no-answer",
			"the slave on CPU %d never answered on %.100s: something of a higher priority takes its CPU, or the lines are not wired together",
			peer.cpu, role_options.path);
	if (master.nobody)
		return error_line(
			STATUS_CANNOT_MEASURE, "no-answer",
			"nobody answers on %.100s: start the slave first, with --role slave and the same path",
			role_options.path);
	if (master.error || (slave && atomic_load(&slave->error)))
		return error_line(STATUS_CANNOT_MEASURE, "path", "%s failed while it was measured: %s",
				  role_options.path,
				  strerror(master.error ? master.error : atomic_load(&slave->error)));
	responses.series->lost = master.not_kept;
	if (role_options.role == PATH_SLAVE)
		responses.series->lost +=
			slave ? atomic_load(&slave->not_kept) : (int64_t)kernel_slave.status.lost;
	return harness_finish(h, harness_options.count ? "count" : "duration");
}

/* Who answers: the slave. Of a master alone it is elsewhere, and its own wake-up is what can be seen. */
static bool explained(const struct harness *h, const struct series *s, struct explained *who)
{
	(void)h;
	if (s != responses.series || role_options.space == SPACE_KERNEL)
		return false;
	*who = role_options.role == PATH_BOTH
		       ? (struct explained){.cpu = peer.cpu, .tid = peer.pid}
		       : (struct explained){.cpu = threads[0]->cpu, .tid = threads[0]->tid};
	return true;
}

static struct harness harness = {
	.table = table,
	.check = check,
	.prepare = prepare_probe,
	.started = begin_trace,
	.run = run,
	.conclude = conclude,
	.explained = explained,
	.threads = threads,
	.thread_count = 1,
	.peer = &peer,
	.series = all_series,
	.measurers = measurers,
};

static int verb_response(int argc, char **argv)
{
	int status = harness_run(&harness, argc, argv);

	peer_process_end(&peer);
	return status;
}

PROBE("response", verb_response, "from a stimulus on a line to the answer of a task that waits for it")
