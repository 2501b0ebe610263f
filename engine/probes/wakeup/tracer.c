// SPDX-License-Identifier: MIT
#include "probes/wakeup/tracer.h"

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
#define EVENT_BYTES 48	/* with its head, and one that extends the time */
#define BUFFER_SPAN_S 4 /* time for which the buffer of a CPU lasts */
#define BUFFER_MIN_KB 256
#define BUFFER_MAX_KB 8192

static struct {
	int root, instance;
	struct cpuset cpus;
	int pipes[CPUSET_MAX];
	unsigned int id;
	struct trace_field number, context, latency;
	size_t data_offset, page_size;
	unsigned char *page;
	int64_t drops, dropped_events;
	bool user;
} tracer;

static int failed(const char *what)
{
	int error = errno;
	struct json j;

	error_begin(&j, "trace", error, "the timerlat tracer cannot be used: %s: %s", what, strerror(error));
	return error_end(&j, STATUS_CANNOT_MEASURE);
}

static bool is_running(const char *path)
{
	char text[TRACE_TEXT_MAX];

	return trace_read(tracer.root, path, text) &&
	       (trace_has_word(text, NAME) || trace_has_word(text, "osnoise"));
}

/* Finds an instance that already runs a tracer of this family; all instances share one set of settings and
 * threads. */
static bool find_other(char path[300])
{
	struct dirent *entry;
	bool found;
	DIR *dir;
	int fd;

	snprintf(path, 300, "current_tracer");
	if (is_running(path))
		return true;
	fd = openat(tracer.root, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
		found = is_running(path);
	}
	closedir(dir);
	return found;
}

/* Reads the kernel's formats. */
static int read_layout(void)
{
	char text[TRACE_TEXT_MAX];
	struct trace_field time, commit, data;

	if (!trace_read(tracer.root, "events/header_page", text))
		return failed("events/header_page");
	if (!trace_find_field(text, "timestamp", &time) || !trace_find_field(text, "commit", &commit) ||
	    !trace_find_field(text, "data", &data) || time.offset != 0 || time.size != 8 ||
	    commit.offset != 8 || data.offset != 8 + commit.size || data.size > PAGE_MAX - data.offset)
		return error_line(STATUS_CANNOT_MEASURE, "trace",
				  "this kernel's trace pages have an unknown format (events/header_page)");
	tracer.data_offset = data.offset;
	tracer.page_size = data.offset + data.size;
	if (!trace_read(tracer.root, "events/header_event", text))
		return failed("events/header_event");
	if (!trace_entries_known(text))
		return error_line(STATUS_CANNOT_MEASURE, "trace",
				  "this kernel's trace entries have an unknown format (events/header_event)");
	if (!trace_read(tracer.root, "events/ftrace/timerlat/format", text))
		return failed("events/ftrace/timerlat/format");
	tracer.id = trace_event_id(text);
	if (!tracer.id || !trace_find_field(text, "seqnum", &tracer.number) ||
	    !trace_find_field(text, "context", &tracer.context) ||
	    !trace_find_field(text, "timer_latency", &tracer.latency) || tracer.number.size != 4 ||
	    tracer.context.size != 4 || tracer.latency.size != 8)
		return error_line(
			STATUS_CANNOT_MEASURE, "trace",
			"this kernel's timerlat event has an unknown format (events/ftrace/timerlat)");
	return 0;
}

static bool write_number(const char *path, int64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, number);
	return trace_write(tracer.root, path, text);
}

/* Reads a file that not every kernel has. */
static bool clear_where_there(const char *path)
{
	return write_number(path, 0) || errno == ENOENT;
}

static int set_up(int64_t interval_ns)
{
	char cpus[256];

	if (!trace_write(tracer.root, "osnoise/cpus", cpuset_format(&tracer.cpus, cpus, sizeof(cpus))))
		return failed("osnoise/cpus");
	if (!write_number("osnoise/timerlat_period_us", interval_ns / 1000))
		return failed("osnoise/timerlat_period_us");
	if (!clear_where_there("osnoise/stop_tracing_us") ||
	    !clear_where_there("osnoise/stop_tracing_total_us") || !clear_where_there("osnoise/print_stack"))
		return failed("osnoise/stop_tracing_us");
	if (!trace_write(tracer.root, "osnoise/options",
			 tracer.user ? "NO_OSNOISE_WORKLOAD" : "OSNOISE_WORKLOAD") &&
	    (errno != ENOENT || tracer.user))
		return failed("osnoise/options");
	if (!trace_write(tracer.instance, "trace_clock", "mono"))
		return failed("trace_clock");
	return trace_write(tracer.instance, "tracing_on", "1") ? 0 : failed("tracing_on");
}

static void set_buffer(int cpu, int64_t interval_ns)
{
	int64_t kb = BUFFER_SPAN_S * NS_PER_S / interval_ns * TIMERLAT_CONTEXTS * EVENT_BYTES / 1024;
	char path[64], number[32];

	if (kb < BUFFER_MIN_KB)
		kb = BUFFER_MIN_KB;
	if (kb > BUFFER_MAX_KB)
		kb = BUFFER_MAX_KB;
	snprintf(path, sizeof(path), "per_cpu/cpu%d/buffer_size_kb", cpu);
	snprintf(number, sizeof(number), "%" PRId64, kb);
	trace_write(tracer.instance, path, number); /* if refused, the default size is kept */
}

/* While one is open the kernel does not change the tracer. */
static int open_pipe(int cpu)
{
	tracer.pipes[cpu] = trace_ring_open(tracer.instance, cpu);
	return tracer.pipes[cpu] < 0 ? failed("trace_pipe_raw") : 0;
}

static void wait_path(int cpu, char path[64])
{
	snprintf(path, 64, "osnoise/per_cpu/cpu%d/timerlat_fd", cpu);
}

int tracer_open(const char *instance, const struct cpuset *cpus, int64_t interval_ns)
{
	char text[TRACE_TEXT_MAX], path[300];
	int status;

	tracer.root = tracefs_open();
	if (tracer.root < 0)
		return failed("tracefs");
	if (!trace_read(tracer.root, "available_tracers", text))
		return failed("available_tracers");
	if (!trace_has_word(text, NAME))
		return error_line(
			STATUS_CANNOT_MEASURE, "no-timerlat",
			"this kernel has no timerlat tracer (CONFIG_TIMERLAT_TRACER); boot one that has it, such as Debian's PREEMPT_RT kernels, or measure with --space user");
	tracer.instance = trace_instance_open(tracer.root, instance);
	if (tracer.instance < 0)
		return failed(instance);
	if (find_other(path))
		return error_line(
			STATUS_CANNOT_MEASURE, "trace",
			"another program runs the timerlat or the osnoise tracer (%s), and there is only one of them: end it, or write nop into that file",
			path);
	tracer.cpus = *cpus;
	wait_path(cpuset_next(cpus, 0), path);
	tracer.user = !faccessat(tracer.root, path, F_OK, 0);
	tracer.page = memory_get(PAGE_MAX);
	if (!tracer.page)
		return failed("memory");
	status = read_layout();
	if (!status)
		status = set_up(interval_ns);
	for (int cpu = cpuset_next(cpus, 0); !status && cpu >= 0;
	     cpu = cpuset_next(cpus, (unsigned int)cpu + 1))
		set_buffer(cpu, interval_ns);
	if (!status && !trace_write(tracer.instance, "current_tracer", NAME))
		status = failed("current_tracer");
	for (int cpu = cpuset_next(cpus, 0); !status && cpu >= 0;
	     cpu = cpuset_next(cpus, (unsigned int)cpu + 1))
		status = open_pipe(cpu);
	return status;
}

bool tracer_has_user(void)
{
	return tracer.user;
}

int tracer_wait_file(int cpu)
{
	char path[64];

	wait_path(cpu, path);
	return openat(tracer.root, path, O_RDONLY | O_CLOEXEC);
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

bool tracer_set_policy(enum policy policy, int priority)
{
	static const int kernel_policy[] = {SCHED_FIFO, SCHED_RR, SCHED_OTHER};
	struct sched_param param = {.sched_priority = policy == POLICY_OTHER ? 0 : priority};
	unsigned int set = 0;
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir))) {
		int cpu = isdigit((unsigned char)entry->d_name[0]) ? cpu_of_thread(entry->d_name) : -1;

		if (cpu >= 0 && cpuset_has(&tracer.cpus, (unsigned int)cpu))
			set += !policy_sched_setscheduler((pid_t)atoi(entry->d_name), kernel_policy[policy],
							  &param);
	}
	if (dir)
		closedir(dir);
	return set == cpuset_count(&tracer.cpus);
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

static bool parse(const unsigned char *record, size_t len, struct timerlat_event *event)
{
	uint16_t id;

	if (len < sizeof(id))
		return false;
	memcpy(&id, record, sizeof(id));
	if (id != tracer.id || !has(&tracer.number, len) || !has(&tracer.context, len) ||
	    !has(&tracer.latency, len))
		return false;
	event->number = word(record, &tracer.number);
	event->context = (int)word(record, &tracer.context);
	memcpy(&event->latency_ns, record + tracer.latency.offset, sizeof(event->latency_ns));
	return true;
}

void tracer_take(int cpu, void (*take)(void *user, const struct timerlat_event *event), void *user)
{
	struct timerlat_event event;
	const unsigned char *record;
	struct trace_page page;
	ssize_t got;
	size_t len;

	while ((got = read(tracer.pipes[cpu], tracer.page, tracer.page_size)) > 0) {
		if (!trace_page_open(&page, tracer.page, (size_t)got, tracer.data_offset))
			continue;
		if (page.dropped) {
			tracer.drops++;
			tracer.dropped_events += page.dropped_count;
		}
		while ((record = trace_page_next(&page, &event.time_ns, &len))) {
			if (parse(record, len, &event))
				take(user, &event);
		}
	}
}

int64_t tracer_dropped(int64_t *count)
{
	*count = tracer.dropped_events;
	return tracer.drops;
}

void tracer_stop(void)
{
	trace_write(tracer.instance, "tracing_on", "0");
}

void tracer_close(void)
{
	for (int cpu = cpuset_next(&tracer.cpus, 0); cpu >= 0;
	     cpu = cpuset_next(&tracer.cpus, (unsigned int)cpu + 1)) {
		if (tracer.pipes[cpu] > 0)
			close(tracer.pipes[cpu]);
	}
	trace_write(tracer.instance, "current_tracer", "nop");
}
