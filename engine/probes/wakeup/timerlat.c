// SPDX-License-Identifier: MIT
#include "probes/wakeup/timerlat.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/tracefs.h"
#include "harness/cpus.h"
#include "trace/instance.h"
#include "trace/page.h"

#define PAGE_MAX (1U << 20)
#define NAME "timerlat"
#define EVENT_BYTES 48	/* with its header, and an event that extends the time */
#define BUFFER_SPAN_S 4 /* time that the buffer of a CPU lasts */
#define BUFFER_MIN_KB 256
#define BUFFER_MAX_KB 8192

static int failed(const char *what)
{
	int error = errno;
	struct json j;

	error_begin(&j, "trace", error, "cannot use the timerlat tracer (%s: %s)", what, strerror(error));
	return error_end(&j, STATUS_CANNOT_MEASURE);
}

static bool is_running(const struct tracer *t, const char *path)
{
	char text[TRACE_TEXT_MAX];

	return trace_read(t->root, path, text) &&
	       (trace_has_word(text, NAME) || trace_has_word(text, "osnoise"));
}

/* Finds an instance that already runs a tracer of this family. All instances share one set of settings and
 * threads. */
static bool find_other(const struct tracer *t, char path[300])
{
	struct dirent *entry;
	bool found;
	DIR *dir;
	int fd;

	snprintf(path, 300, "current_tracer");
	if (is_running(t, path))
		return true;
	fd = openat(t->root, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	for (found = false; !found && (entry = readdir(dir));) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, 300, "instances/%s/current_tracer", entry->d_name);
		found = is_running(t, path);
	}
	closedir(dir);
	return found;
}

/* Reads the kernel's formats. */
static int read_layout(struct tracer *t)
{
	char text[TRACE_TEXT_MAX];
	struct trace_field time, commit, data;

	if (!trace_read(t->root, "events/header_page", text))
		return failed("events/header_page");
	if (!trace_find_field(text, "timestamp", &time) || !trace_find_field(text, "commit", &commit) ||
	    !trace_find_field(text, "data", &data) || time.offset != 0 || time.size != 8 ||
	    commit.offset != 8 || data.offset != 8 + commit.size || data.size > PAGE_MAX - data.offset)
		return error_line(STATUS_CANNOT_MEASURE, "trace",
				  "this kernel's trace pages have an unknown format (events/header_page); "
				  "measure with --space user");
	t->data_offset = data.offset;
	t->page_size = data.offset + data.size;
	if (!trace_read(t->root, "events/header_event", text))
		return failed("events/header_event");
	if (!trace_entries_known(text))
		return error_line(STATUS_CANNOT_MEASURE, "trace",
				  "this kernel's trace entries have an unknown format "
				  "(events/header_event); measure with --space user");
	if (!trace_read(t->root, "events/ftrace/timerlat/format", text))
		return failed("events/ftrace/timerlat/format");
	t->id = trace_event_id(text);
	if (!t->id || !trace_find_field(text, "seqnum", &t->number) ||
	    !trace_find_field(text, "context", &t->context) ||
	    !trace_find_field(text, "timer_latency", &t->latency) || t->number.size != 4 ||
	    t->context.size != 4 || t->latency.size != 8)
		return error_line(
			STATUS_CANNOT_MEASURE, "trace",
			"this kernel's timerlat event has an unknown format (events/ftrace/timerlat); "
			"measure with --space user");
	return 0;
}

static bool write_number(const struct tracer *t, const char *path, int64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, number);
	return trace_write(t->root, path, text);
}

/* Reads a file that only some kernels have. */
static bool clear_where_there(const struct tracer *t, const char *path)
{
	return write_number(t, path, 0) || errno == ENOENT;
}

static int set_up(const struct tracer *t, int64_t interval_ns)
{
	char cpus[256];

	if (!trace_write(t->root, "osnoise/cpus", cpuset_format(&t->cpus, cpus, sizeof(cpus))))
		return failed("osnoise/cpus");
	if (!write_number(t, "osnoise/timerlat_period_us", interval_ns / 1000))
		return failed("osnoise/timerlat_period_us");
	if (!clear_where_there(t, "osnoise/stop_tracing_us") ||
	    !clear_where_there(t, "osnoise/stop_tracing_total_us") ||
	    !clear_where_there(t, "osnoise/print_stack"))
		return failed("osnoise/stop_tracing_us");
	if (!trace_write(t->root, "osnoise/options", t->user ? "NO_OSNOISE_WORKLOAD" : "OSNOISE_WORKLOAD") &&
	    (errno != ENOENT || t->user))
		return failed("osnoise/options");
	if (!trace_write(t->instance, "trace_clock", "mono"))
		return failed("trace_clock");
	return trace_write(t->instance, "tracing_on", "1") ? 0 : failed("tracing_on");
}

static void set_buffer(const struct tracer *t, int cpu, int64_t interval_ns)
{
	int64_t kb = BUFFER_SPAN_S * NS_PER_S / interval_ns * TIMERLAT_CONTEXTS * EVENT_BYTES / 1024;
	char path[64], number[32];

	if (kb < BUFFER_MIN_KB)
		kb = BUFFER_MIN_KB;
	if (kb > BUFFER_MAX_KB)
		kb = BUFFER_MAX_KB;
	snprintf(path, sizeof(path), "per_cpu/cpu%d/buffer_size_kb", cpu);
	snprintf(number, sizeof(number), "%" PRId64, kb);
	trace_write(t->instance, path, number); /* if refused, the default size is kept */
}

/* While a descriptor is open, the kernel does not change the tracer. */
static int open_pipe(struct tracer *t, int cpu)
{
	t->pipes[cpu] = trace_ring_open(t->instance, cpu);
	return t->pipes[cpu] < 0 ? failed("trace_pipe_raw") : 0;
}

static void wait_path(int cpu, char path[64])
{
	snprintf(path, 64, "osnoise/per_cpu/cpu%d/timerlat_fd", cpu);
}

int tracer_open(struct tracer *t, const char *instance, const struct cpuset *cpus, int64_t interval_ns)
{
	char text[TRACE_TEXT_MAX], path[300];
	int status;

	t->root = tracefs_open();
	if (t->root < 0)
		return failed("tracefs");
	if (!trace_read(t->root, "available_tracers", text))
		return failed("available_tracers");
	if (!trace_has_word(text, NAME))
		return error_line(
			STATUS_CANNOT_MEASURE, "no-timerlat",
			"this kernel has no timerlat tracer (CONFIG_TIMERLAT_TRACER); boot one that has it, "
			"such as Debian's PREEMPT_RT kernels, or measure with --space user");
	t->instance = trace_instance_open(t->root, instance);
	if (t->instance < 0)
		return failed(instance);
	if (find_other(t, path))
		return error_line(
			STATUS_CANNOT_MEASURE, "trace",
			"another program is using the timerlat or osnoise tracer (%s), which only one can "
			"use at a time: end that program, or write nop into this file",
			path);
	t->cpus = *cpus;
	wait_path(cpuset_next(cpus, 0), path);
	t->user = !faccessat(t->root, path, F_OK, 0);
	t->page = memory_get(PAGE_MAX);
	if (!t->page)
		return failed("memory");
	status = read_layout(t);
	if (!status)
		status = set_up(t, interval_ns);
	for (int cpu = cpuset_next(cpus, 0); !status && cpu >= 0;
	     cpu = cpuset_next(cpus, (unsigned int)cpu + 1))
		set_buffer(t, cpu, interval_ns);
	if (!status && !trace_write(t->instance, "current_tracer", NAME))
		status = failed("current_tracer");
	for (int cpu = cpuset_next(cpus, 0); !status && cpu >= 0;
	     cpu = cpuset_next(cpus, (unsigned int)cpu + 1))
		status = open_pipe(t, cpu);
	return status;
}

int tracer_wait_file(const struct tracer *t, int cpu)
{
	char path[64];

	wait_path(cpu, path);
	return openat(t->root, path, O_RDONLY | O_CLOEXEC);
}

/* Returns the CPU whose kernel thread this process is; -1: none. */
static int cpu_of_thread(const char *pid)
{
	char path[64], name[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = read(fd, name, sizeof(name) - 1);
	close(fd);
	name[len > 0 ? len : 0] = '\0';
	return !strncmp(name, NAME "/", strlen(NAME) + 1) ? atoi(name + strlen(NAME) + 1) : -1;
}

bool tracer_set_policy(const struct tracer *t, enum policy policy, int priority)
{
	static const int kernel_policy[] = {SCHED_FIFO, SCHED_RR, SCHED_OTHER};
	struct sched_param param = {.sched_priority = policy == POLICY_OTHER ? 0 : priority};
	unsigned int set = 0;
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir))) {
		int cpu = isdigit((unsigned char)entry->d_name[0]) ? cpu_of_thread(entry->d_name) : -1;

		if (cpu >= 0 && cpuset_has(&t->cpus, (unsigned int)cpu))
			set += !policy_sched_setscheduler((pid_t)atoi(entry->d_name), kernel_policy[policy],
							  &param);
	}
	if (dir)
		closedir(dir);
	return set == cpuset_count(&t->cpus);
}

static uint32_t word(const unsigned char *record, const struct trace_field *field)
{
	uint32_t value;

	memcpy(&value, record + field->offset, sizeof(value));
	return value;
}

static bool has(const struct trace_field *field, size_t len)
{
	return field->size <= len && field->offset <= len - field->size;
}

static bool parse(const struct tracer *t, const unsigned char *record, size_t len,
		  struct timerlat_event *event)
{
	uint16_t id;

	if (len < sizeof(id))
		return false;
	memcpy(&id, record, sizeof(id));
	if (id != t->id || !has(&t->number, len) || !has(&t->context, len) || !has(&t->latency, len))
		return false;
	event->number = word(record, &t->number);
	event->context = (int)word(record, &t->context);
	memcpy(&event->latency_ns, record + t->latency.offset, sizeof(event->latency_ns));
	return true;
}

void tracer_take(struct tracer *t, int cpu, void (*take)(void *user, const struct timerlat_event *event),
		 void *user)
{
	struct timerlat_event event;
	const unsigned char *record;
	struct trace_page page;
	ssize_t got;
	size_t len;

	while ((got = read(t->pipes[cpu], t->page, t->page_size)) > 0) {
		if (!trace_page_open(&page, t->page, (size_t)got, t->data_offset))
			continue;
		if (page.dropped) {
			t->drops++;
			t->dropped_events += page.dropped_count;
		}
		while ((record = trace_page_next(&page, &event.time_ns, &len))) {
			if (parse(t, record, len, &event))
				take(user, &event);
		}
	}
}

void tracer_stop(const struct tracer *t)
{
	trace_write(t->instance, "tracing_on", "0");
}

void tracer_close(const struct tracer *t)
{
	for (int cpu = cpuset_next(&t->cpus, 0); cpu >= 0;
	     cpu = cpuset_next(&t->cpus, (unsigned int)cpu + 1)) {
		if (t->pipes[cpu] > 0)
			close(t->pipes[cpu]);
	}
	trace_write(t->instance, "current_tracer", "nop");
}
