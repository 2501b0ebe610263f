// SPDX-License-Identifier: MIT
#include "ext/signal/engine/path/path.h"

#include <string.h>

#include "base/error.h"
#include "base/stream.h"
#include "ext/signal/engine/path/wire.h"
#include "harness/cpus.h"
#include "harness/harness.h"
#include "harness/peer_process.h"
#include "rt/runtime.h"

#ifdef RTGAUGE_COBALT
#define COKERNEL_PATHS "choose loop:mqueue, wire or rtdm:CHIP:LINES"
#else
#define COKERNEL_PATHS "choose loop:mqueue"
#endif

const char *const path_role_names[] = {"master", "slave", "both", NULL};

static const struct path_kind *const kinds[] = {&path_eventfd,	&path_pipe, &path_socketpair, &path_mqueue,
						&path_loop_udp, &path_udp,  &path_gpio,	      &path_wire,
#ifdef RTGAUGE_COBALT
						&path_rtdm
#endif
};

/* Returns the kind with which the text begins; *rest is the text after it. */
static const struct path_kind *kind_of(const char *text, const char **rest)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i]->name);

		if (strncmp(text, kinds[i]->name, len))
			continue;
		*rest = text + len;
		if (**rest == ':')
			(*rest)++;
		else if (**rest)
			continue;
		return kinds[i];
	}
	return NULL;
}

int path_open(const char *text, enum path_role role, bool both_ways, struct path_end *ends)
{
	const char *rest = "";
	const struct path_kind *kind = kind_of(text, &rest);

	if (!kind)
		return error_line(
			STATUS_USAGE, "path",
			"unknown --path %.100s; choose from loop:eventfd, loop:pipe, loop:socketpair, "
			"loop:mqueue, loop:udp, udp:HOST:PORT, gpio:CHIP:LINES and wire",
			text);
	if (RUNTIME_IS_COKERNEL && !kind->on_cokernel)
		return error_line(
			STATUS_USAGE, "path",
			"--path %.100s uses Linux, which takes threads away from the co-kernel: " COKERNEL_PATHS
			", or leave --rt out",
			text);
	ends[PATH_MASTER] = ends[PATH_SLAVE] = (struct path_end){.kind = kind, .in = -1, .out = -1};
	ends[PATH_SLAVE].slave = true;
	return kind->open(rest, role, both_ways, ends);
}

int path_open_for_kernel(const char *text, enum path_role role, bool both_ways,
			 struct path_kernel_end *kernel, struct path_end *ends)
{
	const char *rest = "";
	const struct path_kind *kind = kind_of(text, &rest);
	int status;

	ends[PATH_MASTER] = ends[PATH_SLAVE] = (struct path_end){.kind = &path_gpio, .in = -1, .out = -1};
	ends[PATH_SLAVE].slave = true;
	if (role != PATH_BOTH && role != kernel->task)
		return error_line(STATUS_USAGE, "path",
				  "with --space kernel, rtgauge measures the %s; give --role %s or both",
				  path_role_names[kernel->task], path_role_names[kernel->task]);
	if (kind == &path_gpio)
		return gpio_open_lines(rest, role, both_ways, kernel, ends);
	if (kind == &path_wire && role == PATH_BOTH && !*rest) {
		status = wire_open(both_ways);
		return status ? status : wire_open_lines(role, both_ways, kernel, ends);
	}
	if (!strcmp(text, "none") && role == kernel->task)
		return 0;
	return error_line(
		STATUS_USAGE, "path",
		"--path %.100s with --space kernel: choose wire (--role both), gpio:CHIP:LINES or, for a task that only takes time stamps, none (--role %s)",
		text, path_role_names[kernel->task]);
}

int path_join(struct path_end *end)
{
	return end->kind->join ? end->kind->join(end) : 0;
}

int roles_join(struct path_end *ends)
{
	int status = runtime_join(), error = 0;

	/* With role both, the slave is another process or in the kernel. */
	if (!status)
		error = path_join(&ends[role_options.role == PATH_SLAVE ? PATH_SLAVE : PATH_MASTER]);
	if (error)
		return error_lacks(STATUS_CANNOT_MEASURE, "method", role_options.path,
				   "choose another --path", "--path %.100s: %s", role_options.path,
				   strerror(error));
	return status;
}

struct role_options role_options = {
	.path = RUNTIME_IS_COKERNEL ? "loop:mqueue" : "loop:eventfd", .role = PATH_BOTH, .slave_cpu = -1};

const struct option_entry roles_options_table[] = {
	{.name = "path",
	 .kind = OPTION_TEXT,
	 .value = &role_options.path,
	 .help = "signal path: loop:KIND, udp:ADDRESS:PORT, gpio:CHIP:LINES or wire"},
	{.name = "role",
	 .kind = OPTION_CHOICE,
	 .value = &role_options.role,
	 .choices = path_role_names,
	 .help = "role of this engine"},
	{.shared = harness_option_space,
	 .value = &role_options.space,
	 .help = "where the measured task runs"},
	{.name = "slave-cpu",
	 .kind = OPTION_INT,
	 .value = &role_options.slave_cpu,
	 .min = -1,
	 .max = CPUSET_MAX - 1,
	 .help = "with --role both, CPU of the slave; -1: a CPU near the CPU of the master"},
	{0},
};

const struct option_entry roles_option_context[] = {
	{.name = "context",
	 .kind = OPTION_CHOICE,
	 .value = &role_options.context,
	 .help = "where the task runs in kernel space: in an interrupt handler or a thread"},
	{0},
};

/* Chooses the master's CPU if the slave's was given: another CPU, unless the same was requested. */
static int other_than(const struct cpuset *measured, int slave)
{
	int first = cpuset_next(measured, 0), second = cpuset_next(measured, (unsigned int)first + 1);

	return cpuset_count(&harness_options.cpus) || first != slave || second < 0 ? first : second;
}

int roles_cpus(struct probe_cpus *cpus, int cpu[2])
{
	int64_t slave_cpu = role_options.slave_cpu;
	int status = 0;

	if (slave_cpu >= 0 && role_options.role != PATH_BOTH)
		return usage_error("--slave-cpu works only with --role both; for a single role, give --cpu");
	cpu[PATH_MASTER] = cpu[PATH_SLAVE] = cpuset_next(&cpus->measured, 0);
	if (slave_cpu >= 0) {
		struct probe_cpus of_slave;
		struct cpuset asked;

		cpuset_clear(&asked);
		cpuset_add(&asked, (unsigned int)slave_cpu);
		status = probe_cpus_choose(&asked, &of_slave);
		cpu[PATH_SLAVE] = (int)slave_cpu;
		cpu[PATH_MASTER] = other_than(&cpus->measured, (int)slave_cpu);
	} else if (role_options.role == PATH_BOTH) {
		cpu[PATH_SLAVE] = placement_beside(cpus, cpu[PATH_MASTER]);
	}
	cpuset_clear(&cpus->measured);
	for (int i = 0; i < 2; i++)
		cpuset_add(&cpus->measured, (unsigned int)cpu[i]);
	return status;
}

int roles_run(struct harness *h, int argc, char **argv)
{
	static struct peer_process peer;
	int status;

	h->thread_count = 1;
	h->peer = &peer;
	status = harness_run(h, argc, argv);
	peer_process_end(&peer);
	return status;
}

void roles_end_alone(struct harness *h, const struct series *s, int64_t end_ns, bool over)
{
	int64_t count = s->total.count + (s->measuring ? s->window.count : 0);

	if (s->reached_ns >= end_ns)
		harness_end_by(h, "duration");
	else if (over || (harness_options.count && count >= harness_options.count))
		harness_end_by(h, "count");
}

void roles_mark_no_stimulus(const char *what, struct json *j)
{
	stream_mark(j, "no-stimulus", SEVERITY_INVALID, 0,
		    "no %s came on %s; check that the master is running, and that this is its line", what,
		    role_options.path);
}

void roles_mark_died(const struct harness *h, const char *role, struct json *j)
{
	if (h->peer->died[0])
		stream_mark(j, "slave-died", SEVERITY_INVALID, -1,
			    "the %s %s before the measurement was over", role, h->peer->died);
}
