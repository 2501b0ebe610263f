// SPDX-License-Identifier: MIT
/*
 * wakeup: one measuring thread a CPU sleeps until an absolute time, reads the clock and stores actual -
 * expected (paper row D1; Delgado & Choi 2020, algorithm 1).
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/commands.h"
#include "base/error.h"
#include "base/options.h"
#include "base/samples_file.h"
#include "base/series.h"
#include "base/stream.h"
#include "probes/clock_cost.h"
#include "probes/cpus.h"
#include "probes/wakeup_thread.h"
#include "rt/clock.h"
#include "rt/dma_latency.h"
#include "rt/memory.h"
#include "rt/policy.h"
#include "rt/watchdog.h"
#include "verbs.h"

#define RING_MOST 65536
#define RING_LEAST 1024
#define RING_SPAN_NS (4 * NS_PER_S)
#define DRAIN_NS (NS_PER_S / 5)
#define LEAD_NS (NS_PER_S / 50) /* from `go` to the first release: every thread waits by then */
#define READY_NS (5 * NS_PER_S)
#define STOPPING_NS (NS_PER_S / 500)

static const char *const timer_names[] = {"nanosleep", "timerfd", NULL};
static const char *const phase_names[] = {"random", "fixed", NULL};
static const char *const on_off[] = {"off", "on", NULL};

struct wakeup_options wakeup_wanted = {
	.interval_ns = 1000000,
	.priority = 98,
	.warm_up_ns = NS_PER_S / 2,
	.policy = POLICY_FIFO,
	.phase = PHASE_RANDOM,
	.memory_lock = 1,
};

static const struct option_entry table[] = {
	{.name = "cpu",
	 .kind = OPTION_CPUS,
	 .value = &wakeup_wanted.cpus,
	 .help = "CPUs to measure: 0-3,6; default all allowed"},
	{.name = "interval-ns",
	 .kind = OPTION_INT,
	 .value = &wakeup_wanted.interval_ns,
	 .min = INT64_MIN,
	 .max = 3600 * NS_PER_S,
	 .help = "between two releases (1000000)"},
	{.name = "policy",
	 .kind = OPTION_CHOICE,
	 .value = &wakeup_wanted.policy,
	 .choices = policy_names,
	 .help = "scheduling"},
	{.name = "priority",
	 .kind = OPTION_INT,
	 .value = &wakeup_wanted.priority,
	 .min = 1,
	 .max = 99,
	 .help = "real-time priority (98)"},
	{.name = "timer",
	 .kind = OPTION_CHOICE,
	 .value = &wakeup_wanted.timer,
	 .choices = timer_names,
	 .help = "waits by"},
	{.name = "phase",
	 .kind = OPTION_CHOICE,
	 .value = &wakeup_wanted.phase,
	 .choices = phase_names,
	 .help = "of the first release against the tick and the other CPUs"},
	{.name = "duration-ns",
	 .kind = OPTION_INT,
	 .value = &wakeup_wanted.duration_ns,
	 .min = 0,
	 .max = INT64_MAX / 4,
	 .help = "of the measured phase; 0: until stopped"},
	{.name = "count",
	 .kind = OPTION_INT,
	 .value = &wakeup_wanted.count,
	 .min = 0,
	 .max = INT64_MAX / 4,
	 .help = "activations a CPU in the measured phase, in place of a duration"},
	{.name = "warm-up-ns",
	 .kind = OPTION_INT,
	 .value = &wakeup_wanted.warm_up_ns,
	 .min = 0,
	 .max = 3600 * NS_PER_S,
	 .help = "set aside at the beginning (500000000)"},
	{.name = "stop-at-ns",
	 .kind = OPTION_INT,
	 .value = &wakeup_wanted.stop_at_ns,
	 .min = 0,
	 .max = INT64_MAX / 4,
	 .help = "end when a latency is larger; 0: never"},
	{.name = "dma-latency-us",
	 .kind = OPTION_INT,
	 .value = &wakeup_wanted.dma_latency_us,
	 .min = -1,
	 .max = INT32_MAX,
	 .help = "keep C-states within this exit latency (0); -1: leave them"},
	{.name = "memory-lock",
	 .kind = OPTION_CHOICE,
	 .value = &wakeup_wanted.memory_lock,
	 .choices = on_off,
	 .help = "lock memory"},
	{.name = "samples-dir",
	 .kind = OPTION_TEXT,
	 .value = &wakeup_wanted.samples_dir,
	 .help = "folder for raw samples"},
	{.name = "go",
	 .kind = OPTION_FLAG,
	 .value = &wakeup_wanted.go,
	 .help = "begin at once and do not read standard input"},
};

#define OPTIONS (sizeof(table) / sizeof(table[0]))

static struct task *tasks;
static unsigned int task_count;
struct wakeup_shared wakeup_shared;
static _Atomic uint64_t drain_progress;
static struct watched watched[PROBE_CPUS_MOST];
static struct watchdog dog = {.stop = &wakeup_shared.stop, .progress = &drain_progress};

static int check_numbers(void)
{
	struct timespec resolution;
	int64_t least;

	if (clock_getres(CLOCK_MONOTONIC, &resolution))
		return error_line(STATUS_CANNOT_MEASURE, "clock", "CLOCK_MONOTONIC cannot be read: %s",
				  strerror(errno));
	least = timespec_ns(&resolution);
	if (wakeup_wanted.interval_ns <= 0)
		return error_line(STATUS_USAGE, "interval",
				  "the interval must be longer than 0; give one such as 1ms or 100us");
	if (wakeup_wanted.interval_ns < least || wakeup_wanted.interval_ns < 1000)
		return error_line(STATUS_USAGE, "interval",
				  "an interval of %" PRId64 " ns is shorter than %s (%" PRId64
				  " ns); give a longer one",
				  wakeup_wanted.interval_ns,
				  least > 1000 ? "the clock's resolution" : "what a thread can sleep",
				  least > 1000 ? least : INT64_C(1000));
	if (wakeup_wanted.duration_ns && wakeup_wanted.count)
		return error_line(STATUS_USAGE, "usage", "give a duration or a count, not both");
	if (wakeup_wanted.count && wakeup_wanted.count > INT64_MAX / 4 / wakeup_wanted.interval_ns)
		return error_line(STATUS_USAGE, "usage",
				  "that count of activations takes more than 70 years");
	return 0;
}

/* Before anything else is done: may we do it at all? */
static int try_permission(void)
{
	char text[512];
	int error = policy_try((enum policy)wakeup_wanted.policy, (int)wakeup_wanted.priority);

	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "permission-rt", "%s",
				  policy_refusal(error, (int)wakeup_wanted.priority, text, sizeof(text)));
	error = wakeup_wanted.memory_lock ? memory_lock() : 0;
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "memory-lock", "%s",
				  memory_refusal(error, text, sizeof(text)));
	return 0;
}

static int no_memory(void)
{
	char text[512];

	if (wakeup_wanted.memory_lock && memory_limited())
		return error_line(STATUS_CANNOT_MEASURE, "memory-lock", "%s",
				  memory_refusal(ENOMEM, text, sizeof(text)));
	return error_line(STATUS_CANNOT_MEASURE, "internal", "not enough memory for %u CPUs; measure fewer",
			  task_count);
}

static size_t ring_size(void)
{
	size_t size = RING_LEAST;

	while (size < RING_MOST && (int64_t)size * wakeup_wanted.interval_ns < RING_SPAN_NS)
		size *= 2;
	return size;
}

static int64_t divide_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

static int make_tasks(const struct cpuset *measured)
{
	int cpu = -1;

	task_count = cpuset_count(measured);
	tasks = memory_get(task_count * sizeof(*tasks));
	for (unsigned int i = 0; tasks && i < task_count; i++) {
		struct task *t = &tasks[i];
		int64_t *slots = memory_get(ring_size() * sizeof(*slots));

		cpu = cpuset_next(measured, (unsigned int)(cpu + 1));
		t->cpu = cpu;
		t->timer_fd = -1;
		t->series = memory_get(sizeof(*t->series));
		if (!slots || !t->series)
			return no_memory();
		ring_init(&t->ring, slots, ring_size());
		t->warm_up_count = divide_up(wakeup_wanted.warm_up_ns, wakeup_wanted.interval_ns);
		t->total_count = INT64_MAX;
		if (wakeup_wanted.count)
			t->total_count = t->warm_up_count + wakeup_wanted.count;
		else if (wakeup_wanted.duration_ns)
			t->total_count = t->warm_up_count +
					 divide_up(wakeup_wanted.duration_ns, wakeup_wanted.interval_ns);
		t->usual_limit_ns = (uint64_t)wakeup_wanted.interval_ns + 1;
		if (wakeup_wanted.stop_at_ns && wakeup_wanted.stop_at_ns < wakeup_wanted.interval_ns)
			t->usual_limit_ns = (uint64_t)wakeup_wanted.stop_at_ns + 1;
		t->limit_ns = t->usual_limit_ns;
		t->series->id = i;
		t->series->cpu = cpu;
		t->series->interval_ns = wakeup_wanted.interval_ns;
		t->series->warm_up_count = t->warm_up_count;
		t->series->total_count = t->total_count;
		t->series->measured_ns = wakeup_wanted.duration_ns ? wakeup_wanted.duration_ns
					 : wakeup_wanted.count
						 ? wakeup_wanted.count * wakeup_wanted.interval_ns
						 : INT64_MAX;
	}
	return tasks ? 0 : no_memory();
}

/* A thread that is not ready within this time is kept from its CPU by somebody above it. */
static bool wait_ready(const struct task *t)
{
	int64_t give_up_ns = clock_now_ns(CLOCK_MONOTONIC) + READY_NS;

	while (!atomic_load(&t->ready)) {
		if (clock_now_ns(CLOCK_MONOTONIC) > give_up_ns)
			return false;
		clock_pause_ns(NS_PER_S / 1000);
	}
	return true;
}

static int start_threads(void)
{
	pthread_attr_t attr;
	int status = 0;

	sem_init(&wakeup_shared.gate, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN + 49152);
	for (unsigned int i = 0; i < task_count && !status; i++) {
		struct task *t = &tasks[i];
		int error = pthread_create(&t->thread, &attr, wakeup_thread, t);

		if (error && wakeup_wanted.memory_lock && memory_limited())
			return no_memory();
		if (error)
			return error_line(STATUS_CANNOT_MEASURE, "internal", "no thread for CPU %d: %s",
					  t->cpu, strerror(error));
		if (!wait_ready(t))
			return error_line(
				STATUS_CANNOT_MEASURE, "cpu-busy",
				"CPU %d did not run its measuring thread for 5 s: something of a higher "
				"priority takes it; end that, or choose other CPUs with --cpu",
				t->cpu);
		if (t->error)
			status = error_line(STATUS_CANNOT_MEASURE, "internal",
					    "CPU %d cannot be measured: %s", t->cpu, strerror(t->error));
		watched[i] = (struct watched){t->tid, t->cpu_clock, &t->done};
	}
	pthread_attr_destroy(&attr);
	return status;
}

static void write_hello(struct json *j, const struct probe_cpus *cpus, int dma_error)
{
	static struct clock_cost cost;
	int error = clock_cost_measure(CLOCK_MONOTONIC, 10000, NS_PER_S / 10, &cost);

	stream_hello(j, "wakeup", table, OPTIONS);
	probe_cpus_json(cpus, j);
	json_open(j, "clock", '{');
	json_str(j, "name", "CLOCK_MONOTONIC");
	json_int(j, "resolution_ns", cost.resolution_ns);
	json_int(j, "cost_count", cost.count);
	if (!error && cost.count) {
		json_int(j, "cost_min_ns", cost.min_ns);
		json_int(j, "cost_p50_ns", clock_cost_quantile(&cost, 0.5));
		json_int(j, "cost_p99_ns", clock_cost_quantile(&cost, 0.99));
		json_real(j, "cost_mean_ns", (double)cost.sum_ns / (double)cost.count);
		json_int(j, "cost_max_ns", cost.max_ns);
	}
	json_close(j, '}');
	json_open(j, "dma_latency", '{');
	if (wakeup_wanted.dma_latency_us < 0)
		json_null(j, "wanted_us");
	else
		json_int(j, "wanted_us", wakeup_wanted.dma_latency_us);
	json_str(j, "state", wakeup_wanted.dma_latency_us < 0 ? "off" : dma_error ? "failed" : "set");
	json_close(j, '}');
	json_close(j, '}');
	json_line(j);
	for (unsigned int i = 0; i < task_count; i++) {
		json_open(j, NULL, '{');
		json_str(j, "type", "series");
		json_uint(j, "series", i);
		json_str(j, "metric", "latency");
		json_str(j, "unit", "ns");
		json_open(j, "labels", '{');
		json_int(j, "cpu", tasks[i].cpu);
		json_close(j, '}');
		json_close(j, '}');
		json_line(j);
	}
	if (dma_error)
		stream_mark(j, "dma-latency-failed", SEVERITY_NOTE, -1,
			    "C-states stay on: /dev/cpu_dma_latency cannot be used (%s)",
			    strerror(dma_error));
	if (!wakeup_wanted.memory_lock)
		stream_mark(j, "not-locked", SEVERITY_NOTE, -1,
			    "memory was not locked: page faults can add to latencies");
}

static int64_t random_below(int64_t bound)
{
	uint64_t value = 0;

	/* A board that has just booted may have no entropy yet: any phase is better than to wait for it. */
	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t)sizeof(value))
		value = (uint64_t)clock_now_ns(CLOCK_MONOTONIC) * UINT64_C(0x9e3779b97f4a7c15);
	return (int64_t)(value % (uint64_t)bound);
}

static int open_samples(void)
{
	for (unsigned int i = 0; wakeup_wanted.samples_dir && i < task_count; i++) {
		tasks[i].series->samples = samples_open(wakeup_wanted.samples_dir, i);
		if (!tasks[i].series->samples)
			return error_line(STATUS_CANNOT_MEASURE, "output",
					  "samples cannot be written to %s: %s", wakeup_wanted.samples_dir,
					  strerror(errno));
	}
	return 0;
}

/* Lets the threads go; what takes time of its own comes before or after. */
static void begin(struct json *j)
{
	int64_t base_ns = clock_now_ns(CLOCK_MONOTONIC) + LEAD_NS;

	for (unsigned int i = 0; i < task_count; i++) {
		struct task *t = &tasks[i];

		t->start_ns =
			base_ns +
			(wakeup_wanted.phase == PHASE_RANDOM ? random_below(wakeup_wanted.interval_ns) : 0);
		t->series->start_ns = t->start_ns;
	}
	for (unsigned int i = 0; i < task_count; i++)
		sem_post(&wakeup_shared.gate);
	for (unsigned int i = 0; i < task_count; i++) {
		struct task *t = &tasks[i];

		if (t->series->samples)
			samples_begin(t->series);
		series_begin(t->series);
		json_open(j, NULL, '{');
		json_str(j, "type", "started");
		json_uint(j, "series", i);
		json_int(j, "start_ns", t->start_ns);
		json_close(j, '}');
		json_line(j);
	}
}

/* Takes what is in the rings; false: every thread has ended and every ring is empty. */
static bool drain(struct json *j)
{
	static int64_t values[4096];
	bool alive = false;

	for (unsigned int i = 0; i < task_count; i++) {
		struct task *t = &tasks[i];
		bool done = atomic_load(&t->done);
		size_t n;

		while ((n = ring_pop(&t->ring, values, sizeof(values) / sizeof(values[0])))) {
			for (size_t v = 0; v < n; v++)
				series_feed(t->series, values[v], j);
		}
		alive |= !done;
	}
	atomic_fetch_add(&drain_progress, 1);
	return alive;
}

/* The thread that drains keeps away from the measured CPUs where there are others, and is no real-time
 * thread. */
static void settle_drain(const struct probe_cpus *cpus)
{
	probe_cpus_leave(cpus);
	policy_set(POLICY_OTHER, 0);	   /* whatever the process was started with */
	setpriority(PRIO_PROCESS, 0, -20); /* where it is refused the ring is what there is */
}

static void stop_threads(void)
{
	atomic_store(&wakeup_shared.stop, true);
	for (unsigned int i = 0; i < task_count; i++) {
		if (!atomic_load(&tasks[i].done))
			pthread_kill(tasks[i].thread, SIGUSR1);
	}
}

static bool samples_failed(void)
{
	bool failed = false;

	for (unsigned int i = 0; i < task_count; i++)
		failed |= tasks[i].series->unwritable ||
			  (tasks[i].series->samples && ferror(tasks[i].series->samples));
	return failed;
}

static int finish(struct json *j, int64_t asleep_ns)
{
	bool stopped = atomic_load(&wakeup_shared.stop);
	const char *reason = wakeup_wanted.count ? "count" : "duration";

	for (unsigned int i = 0; i < task_count; i++) {
		struct task *t = &tasks[i];
		struct usage usage = t->after;

		usage.voluntary_switches -= t->before.voluntary_switches;
		usage.involuntary_switches -= t->before.involuntary_switches;
		usage.minor_faults -= t->before.minor_faults;
		usage.major_faults -= t->before.major_faults;
		usage.cpu_ns -= t->before.cpu_ns;
		if (usage.run_delay_ns >= 0)
			usage.run_delay_ns -= t->before.run_delay_ns;
		if (t->moved)
			stream_mark(
				j, "cpu-lost", SEVERITY_INVALID, (int)i,
				"CPU %d was taken from its measuring thread, which went on on another one",
				t->cpu);
		series_end(t->series, stopped && t->series->position < t->total_count, j);
		series_summary(t->series, t->usage_known ? &usage : NULL, j);
		if (t->series->lost)
			stream_mark(j, "samples-lost", SEVERITY_INVALID, (int)i,
				    "%" PRId64 " activations of CPU %d were measured and could not be kept",
				    t->series->lost, t->cpu);
		if (t->series->impossible)
			stream_mark(j, "impossible-latency", SEVERITY_INVALID, (int)i,
				    "CPU %d woke before its time %" PRId64
				    " times: its clock or timer is wrong",
				    t->cpu, t->series->impossible);
		if (t->series->samples && !samples_close(t->series))
			t->series->unwritable = true;
	}
	if (clock_now_ns(CLOCK_BOOTTIME) - clock_now_ns(CLOCK_MONOTONIC) - asleep_ns > NS_PER_S / 1000)
		stream_mark(j, "clock-changed", SEVERITY_INVALID, -1,
			    "the machine was suspended while it was measured");
	if (atomic_load(&dog.bitten)) {
		stream_mark(j, "watchdog", SEVERITY_INVALID, -1, "%s", dog.why);
		reason = "watchdog";
	} else if (atomic_load(&wakeup_shared.over_threshold)) {
		reason = "threshold";
	} else if (stopped) {
		reason = "stopped";
	}
	if (samples_failed())
		return error_line(STATUS_CANNOT_MEASURE, "output",
				  "raw samples could not be written to %s: the disk is full or failed; free "
				  "space there",
				  wakeup_wanted.samples_dir);
	stream_end(j, reason, STATUS_OK);
	return stream_written() ? STATUS_OK : STATUS_CANNOT_MEASURE;
}

int verb_wakeup(int argc, char **argv)
{
	struct probe_cpus cpus;
	int64_t asleep_ns, drain_ns = DRAIN_NS;
	int status, dma_error;
	struct json j;

	status = options_parse(table, OPTIONS, argc, argv);
	if (status)
		return status < 0 ? STATUS_OK : status;
	stream_begin(&j);
	status = check_numbers();
	if (!status)
		status = probe_cpus_choose(&wakeup_wanted.cpus, &cpus);
	if (!status)
		status = try_permission();
	if (!status)
		status = make_tasks(&cpus.measured);
	if (status)
		return status;
	commands_begin(!wakeup_wanted.go);
	status = start_threads();
	if (status)
		return status;
	settle_drain(&cpus);
	dma_error = wakeup_wanted.dma_latency_us >= 0 ? dma_latency_hold(wakeup_wanted.dma_latency_us) : 0;
	write_hello(&j, &cpus, dma_error);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "armed");
	json_int(&j, "time_ns", clock_now_ns(CLOCK_MONOTONIC));
	json_close(&j, '}');
	json_line(&j);
	if (!commands_wait_go()) {
		stream_end(&j, "stopped", STATUS_OK);
		return STATUS_OK;
	}
	status = open_samples();
	if (status)
		return status;
	asleep_ns = clock_now_ns(CLOCK_BOOTTIME) - clock_now_ns(CLOCK_MONOTONIC);
	begin(&j);
	dog.threads = watched;
	dog.count = task_count;
	dog.limit_ns = INT64_MAX;
	pthread_getcpuclockid(pthread_self(), &dog.drain_clock);
	if (tasks[0].total_count != INT64_MAX)
		dog.limit_ns = tasks[0].total_count * wakeup_wanted.interval_ns;
	if (wakeup_wanted.policy != POLICY_OTHER && watchdog_start(&dog))
		stream_mark(&j, "watchdog", SEVERITY_NOTE, -1,
			    "there is no watchdog: its thread could not be started");
	if (ring_size() * (uint64_t)wakeup_wanted.interval_ns / 4 < (uint64_t)drain_ns)
		drain_ns = (int64_t)ring_size() * wakeup_wanted.interval_ns / 4;
	while (drain(&j)) {
		bool stopping = atomic_load(&wakeup_shared.stop);

		if (stopping)
			clock_pause_ns(STOPPING_NS);
		else
			commands_wait(drain_ns);
		/* Again and again: a signal that comes just before a thread sleeps does not wake it. */
		if (stopping || atomic_load(&commands_stopped) || !stream_written() || samples_failed())
			stop_threads();
	}
	drain(&j);
	atomic_store(&dog.ended, true);
	for (unsigned int i = 0; i < task_count; i++)
		pthread_join(tasks[i].thread, NULL);
	return finish(&j, asleep_ns);
}
