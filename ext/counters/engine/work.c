// SPDX-License-Identifier: MIT
/*
 * work: counts what each activation of a program's threads needed: CPU time and, if the processor has
 * counters, cycles, instructions, last-level misses, and interruptions by the firmware (SMI).
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/threads.h"
#include "base/clock.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "base/perf.h"
#include "base/tracefs.h"
#include "base/verbs.h"
#include "ext/counters/engine/activations.h"
#include "trace/instance.h"

#define SWITCH_FORMAT "events/sched/sched_switch/format"
#define PAGES 64 /* of each thread's ring; a power of two */
#define RECORD_MAX 1024
#define DRAIN_NS (NS_PER_S / 20)
#define ACTIVATIONS_MAX 1000000

static struct {
	int64_t pid, duration_ns;
	const char *threads;
} options = {.duration_ns = 10 * NS_PER_S};

static const struct option_entry table[] = {
	{.name = "pid",
	 .kind = OPTION_INT,
	 .value = &options.pid,
	 .min = 1,
	 .max = INT32_MAX,
	 .help = "process ID of the program"},
	{.name = "threads",
	 .kind = OPTION_TEXT,
	 .value = &options.threads,
	 .help = "names of the threads, separated by commas; default: real-time threads, or all threads if "
		 "none is real-time"},
	{.name = "duration-ns",
	 .kind = OPTION_INT,
	 .value = &options.duration_ns,
	 .min = 1,
	 .max = 3600 * NS_PER_S,
	 .help = "how long to count, in ns"},
	{0},
};

/* The switches come first, because they take the samples. */
static const struct counter {
	const char *name;
	uint32_t type; /* PERF_TYPE_MAX: of the MSRs, whose type the kernel chooses */
	uint64_t config;
} counters[] = {
	{"switches", PERF_TYPE_TRACEPOINT, 0},
	{"cpu_ns", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"llc_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"smi", PERF_TYPE_MAX, 0},
};

#define CYCLES 3 /* the first of the processor */
#define COUNT (sizeof(counters) / sizeof(counters[0]))
_Static_assert(COUNT <= COUNTERS_MAX, "an activation has room for all counters");

/* The counters of a thread while it runs on cores of one kind. */
struct group {
	struct activations all;
	struct perf_event_mmap_page *ring;
	int leader;
	bool has[COUNT];
};

struct thread {
	struct watched_thread who;
	struct group groups[PERF_CORE_UNITS_MAX];
};

static struct {
	struct thread threads[WATCH_THREADS_MAX];
	int count, left_out;
	struct perf_core_units units;
	int groups; /* of each thread */
	struct perf_event_attr attrs[COUNT];
	bool known[COUNT]; /* the attribute is */
	struct trace_field state;
	int64_t activations;
} work;

static int open_counter(size_t which, pid_t tid, uint32_t unit, int leader)
{
	struct perf_event_attr attr = work.attrs[which];

	if (attr.type == PERF_TYPE_HARDWARE)
		perf_hardware_event(attr.config, unit, &attr);
	return work.known[which]
		       ? (int)syscall(SYS_perf_event_open, &attr, tid, -1, leader, PERF_FLAG_FD_CLOEXEC)
		       : -1;
}

/* Several units only if perf lets each be chosen: otherwise, groups of software counters would count the
 * same. */
static void find_units(void)
{
	struct perf_core_units units = perf_find_core_units(PERF_DEVICES);

	work.groups = 1;
	if (units.count < 2)
		return;
	for (int i = 0; i < units.count; i++) {
		int fd = open_counter(CYCLES, 0, units.types[i], -1);

		if (fd < 0)
			continue;
		close(fd);
		work.units.types[work.units.count++] = units.types[i];
	}
	if (work.units.count > 1)
		work.groups = work.units.count;
}

/* Finds perf's numbers of the counters. Returns 0, or the exit status after an `error` line. */
static int find_counters(void)
{
	char format[TRACE_TEXT_MAX];
	int root = tracefs_open();
	bool read;

	if (root < 0)
		return error_line(STATUS_CANNOT_MEASURE, "internal",
				  "cannot open tracefs: %s; run rtgauge as root", errname(errno));
	read = trace_read(root, SWITCH_FORMAT, format) && trace_find_field(format, "prev_state", &work.state);
	close(root);
	if (!read)
		return error_lacks(STATUS_CANNOT_MEASURE, "lacking", "the event sched_switch",
				   "use a kernel with CONFIG_FTRACE", "the kernel traces no switches");
	for (size_t i = 0; i < COUNT; i++) {
		work.known[i] = true;
		work.attrs[i] = (struct perf_event_attr){
			.size = sizeof(work.attrs[i]),
			.type = counters[i].type,
			.config = counters[i].config,
			.use_clockid = 1, /* a group has one clock */
			.clockid = CLOCK_MONOTONIC,
		};
		if (counters[i].type != PERF_TYPE_MAX)
			continue;
		work.known[i] = perf_msr_event(counters[i].name, &work.attrs[i]);
	}
	find_units();
	work.attrs[0].config = trace_event_id(format);
	work.attrs[0].sample_period = 1;
	work.attrs[0].sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_RAW;
	work.attrs[0].read_format =
		PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return 0;
}

/* Leaves out counters that these cores lack. Returns false with errno. */
static bool begin_group(struct group *group, pid_t tid, uint32_t unit)
{
	size_t len = (size_t)(PAGES + 1) * (size_t)sysconf(_SC_PAGESIZE);
	int leader = open_counter(0, tid, 0, -1);
	void *ring;

	if (leader < 0)
		return false;
	group->leader = leader;
	for (size_t i = 0; i < COUNT; i++) {
		group->has[i] = !i || open_counter(i, tid, unit, leader) >= 0;
		group->all.counters += group->has[i];
	}
	group->all.state_offset = work.state.offset;
	group->all.state_size = work.state.size;
	ring = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, leader, 0);
	group->ring = ring == MAP_FAILED ? NULL : ring;
	return group->ring;
}

/* A group counts only on the cores of its unit: on others, the kernel does not even count its switches. */
static bool begin_thread(struct thread *thread)
{
	for (int i = 0; i < work.groups; i++) {
		if (!begin_group(&thread->groups[i], thread->who.tid, work.units.types[i]))
			return false;
	}
	return true;
}

static void write_activation(pid_t tid, const struct group *group, const struct activation *activation,
			     struct json *j)
{
	unsigned int number = 0;

	json_open(j, NULL, '{');
	json_str(j, "type", "activation");
	json_int(j, "tid", tid);
	json_int(j, "end_ns", activation->end_ns);
	json_bool(j, "whole", activation->whole);
	for (size_t i = 0; i < COUNT; i++) {
		if (group->has[i])
			json_int(j, counters[i].name, activation->values[number++]);
	}
	json_close(j, '}');
	json_line(j);
}

static void drain(pid_t tid, struct group *group, struct json *j)
{
	unsigned char record[RECORD_MAX];
	struct activation ended;
	size_t size;

	while (work.activations < ACTIVATIONS_MAX &&
	       (size = perf_ring_next(group->ring, record, sizeof(record))) > 0) {
		if (!activations_take(&group->all, record, size, &ended))
			continue;
		work.activations++;
		write_activation(tid, group, &ended, j);
	}
}

static void write_begin(struct json *j)
{
	json_open(j, NULL, '{');
	json_str(j, "type", "work");
	json_int(j, "version", 1);
	json_int(j, "left_out", work.left_out);
	json_open(j, "missing", '[');
	for (size_t i = 0; i < COUNT; i++) {
		bool has = true;

		for (int group = 0; group < work.groups; group++)
			has &= work.threads[0].groups[group].has[i];
		if (!has)
			json_str(j, NULL, counters[i].name);
	}
	json_close(j, ']');
	json_open(j, "threads", '[');
	for (int i = 0; i < work.count; i++) {
		json_open(j, NULL, '{');
		json_int(j, "tid", work.threads[i].who.tid);
		json_str(j, "name", work.threads[i].who.name);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
	json_line(j);
	fflush(stdout);
}

static void write_end(struct json *j)
{
	int64_t lost = 0;

	for (int i = 0; i < work.count * work.groups; i++)
		lost += work.threads[i / work.groups].groups[i % work.groups].all.lost;
	json_open(j, NULL, '{');
	json_str(j, "type", "ended");
	json_int(j, "activations", work.activations);
	json_int(j, "lost", lost);
	json_bool(j, "full", work.activations >= ACTIVATIONS_MAX);
	json_close(j, '}');
	json_line(j);
}

static int begin_all(void)
{
	struct watched_thread found[WATCH_THREADS_MAX];
	int count = threads_find((pid_t)options.pid, options.threads, found, &work.left_out);

	if (count <= 0)
		return error_line(STATUS_USAGE, "no-program",
				  count ? "there is no process %lld"
					: "the program with process ID %lld does not have a thread of this "
					  "name",
				  (long long)options.pid);
	for (int i = 0; i < count; i++) {
		struct thread *thread = &work.threads[work.count];

		thread->who = found[i];
		if (begin_thread(thread))
			work.count++;
		else if (errno != ESRCH)
			return error_line(STATUS_CANNOT_MEASURE, "internal",
					  "perf cannot count the thread %s: %s; run rtgauge as root, and see "
					  "/proc/sys/kernel/perf_event_paranoid",
					  found[i].name, errname(errno));
	}
	return work.count ? 0
			  : error_line(STATUS_USAGE, "no-program",
				       "the program with process ID %lld has ended", (long long)options.pid);
}

static bool have_all_ended(void)
{
	struct pollfd fds[WATCH_THREADS_MAX];
	int ended = 0;

	for (int i = 0; i < work.count; i++)
		fds[i] = (struct pollfd){.fd = work.threads[i].groups[0].leader};
	if (poll(fds, (nfds_t)work.count, 0) < 0)
		return false;
	for (int i = 0; i < work.count; i++)
		ended += (fds[i].revents & POLLHUP) != 0;
	return ended == work.count;
}

static int run(int argc, char **argv)
{
	struct json j;
	int64_t end_ns;
	bool over = false;
	int status = options_parse(table, argc, argv);

	if (!status && !options.pid)
		status = usage_error("--pid is missing; give the process ID of the program");
	if (!status)
		status = find_counters();
	if (!status)
		status = begin_all();
	if (status)
		return status;
	commands_begin(true);
	json_start(&j, stdout);
	write_begin(&j);
	end_ns = clock_now_ns(CLOCK_MONOTONIC) + options.duration_ns;
	while (!over && !commands_stopped && clock_now_ns(CLOCK_MONOTONIC) < end_ns) {
		commands_wait(DRAIN_NS);
		over = have_all_ended();
		for (int i = 0; i < work.count * work.groups; i++)
			drain(work.threads[i / work.groups].who.tid,
			      &work.threads[i / work.groups].groups[i % work.groups], &j);
		over |= work.activations >= ACTIVATIONS_MAX;
		fflush(stdout);
	}
	write_end(&j);
	return fflush(stdout) ? STATUS_CANNOT_MEASURE : STATUS_OK;
}

AGENT_VERB("work", run, "count what each activation of a program's threads needed")
