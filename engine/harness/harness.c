// SPDX-License-Identifier: MIT
#include "harness/harness.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/commands.h"
#include "base/cpuset.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/samples_file.h"
#include "base/stream.h"
#include "harness/clock_cost.h"
#include "harness/cpu_counters.h"
#include "harness/heat.h"
#include "harness/mode_switches.h"
#include "harness/peer_process.h"
#include "harness/summary.h"
#include "harness/suspended.h"
#include "harness/thread_watch.h"
#include "rt/dma_latency.h"
#include "rt/runtime.h"
#include "trace/instance.h"

#define STOPPING_NS (NS_PER_S / 500)

static struct probe_cpus cpus;

static bool takes_policy_other(const struct harness *h)
{
	const struct option_entry *option;
	struct options_walk walk;

	options_walk_begin(&walk, h->table);
	while ((option = options_next(&walk))) {
		if (option->value == &harness_options.policy)
			return true;
	}
	return false;
}

/* Tries first of all whether the kernel permits the measurement. */
static int try_permission(const struct harness *h)
{
	/* The kernel decides on a deadline task by its numbers, so each thread tries this itself. */
	int error = harness_options.policy == POLICY_DEADLINE
			    ? 0
			    : policy_try((enum policy)harness_options.policy, (int)harness_options.priority);

	if (error)
		return refuse_priority(error, (int)harness_options.priority, takes_policy_other(h));
	error = harness_options.memory_lock ? memory_lock() : 0;
	return error ? refuse_memory_lock(error) : 0;
}

/* Checks all options together: numbers, CPUs and, unless only_check, permission and memory lock. Returns
 * 0, or the exit status after an `error` line. */
static int check_options(struct harness *h, bool only_check)
{
	int status;

	if (harness_options.duration_ns && harness_options.count)
		return usage_error("give a duration or a count, not both");
	status = explain_check();
	if (status)
		return status;
	status = h->check ? h->check(h) : 0;
	if (status)
		return status;
	harness_options.warm_up_ns += explain_warm_up_ns();
	status = probe_cpus_choose(&harness_options.cpus, &cpus);
	if (status || only_check)
		return status;
	return try_permission(h);
}

/* Reads the options in the measuring runtime. Returns 0, or the exit status after an `error` line, or -1
 * after the help. */
static int open_probe(struct harness *h, int argc, char **argv, bool only_check)
{
	int status = options_parse(h->table, argc, argv);

	if (status)
		return status;
	status = runtime_check(argv[0], h->table);
	if (status)
		return status;
	status = h->peer ? 0 : runtime_join();
	if (status)
		return status;
	stream_begin(&h->j);
	h->cpus = &cpus;
	h->state = h->state_size ? memory_get(h->state_size) : NULL;
	if (h->state_size && !h->state)
		return harness_no_memory();
	return check_options(h, only_check);
}

/* Keeps the thread that drains off the measured CPUs, if there are others, and away from real-time
 * priority. */
static void settle_drain(void)
{
	probe_cpus_leave(&cpus);
	policy_set(POLICY_OTHER, 0);	   /* whatever the process was started with */
	setpriority(PRIO_PROCESS, 0, -20); /* if this is refused, the ring must be enough */
}

/* Starts the threads. Returns 0, or the exit status after an `error` line. */
static int start(struct harness *h)
{
	commands_begin(!harness_options.go);
	sem_init(&harness_shared.gate, 0, 0);
	for (unsigned int i = 0; i < h->thread_count; i++) {
		struct harness_thread *t = h->threads[i];
		int status = harness_thread_start(t);

		if (status)
			return status;
		thread_watch_add(i, t);
	}
	settle_drain();
	return 0;
}

static void write_dma_latency(const struct harness *h, struct json *j)
{
	json_open(j, "dma_latency", '{');
	if (harness_options.dma_latency_us < 0)
		json_null(j, "wanted_us");
	else
		json_int(j, "wanted_us", harness_options.dma_latency_us);
	json_str(j, "state", harness_options.dma_latency_us < 0 ? "off" : h->dma_error ? "failed" : "set");
	json_close(j, '}');
}

static void write_hello(struct harness *h, const char *name)
{
	struct json *j = &h->j;

	stream_hello(j, name, h->table);
	probe_cpus_json(&cpus, j);
	clock_cost_json(j);
	write_dma_latency(h, j);
	if (RUNTIME_IS_COKERNEL)
		json_str(j, "runtime", RUNTIME_NAME);
	if (h->hello)
		h->hello(h, j);
	json_close(j, '}');
	json_line(j);
	for (unsigned int i = 0; i < h->series_count; i++)
		series_announce(h->series[i], j);
	if (h->dma_error)
		stream_mark(j, "dma-latency-failed", SEVERITY_NOTE, -1,
			    "C-states remain enabled, because rtgauge cannot open /dev/cpu_dma_latency (%s)",
			    strerror(h->dma_error));
	if (!harness_options.memory_lock)
		stream_mark(j, "not-locked", SEVERITY_NOTE, -1,
			    "memory was not locked, so page faults can make latencies longer");
}

static int open_samples(struct harness *h)
{
	for (unsigned int i = 0; harness_options.samples_dir && i < h->series_count; i++) {
		h->series[i]->samples = samples_open(harness_options.samples_dir, h->series[i]->id);
		if (!h->series[i]->samples)
			return error_line(STATUS_CANNOT_MEASURE, "output", "cannot write samples to %s: %s",
					  harness_options.samples_dir, strerror(errno));
	}
	return 0;
}

static bool is_latency(const struct series *s)
{
	return !s->metric || !strcmp(s->metric, "latency");
}

/* Finds the thread whose latencies a series has, unless the probe names it. */
static bool measured_by(const struct harness *h, const struct series *s, struct explained *who)
{
	const struct harness_thread *t = h->measurers ? h->measurers[s->id] : NULL;

	if (!t || !is_latency(s))
		return false;
	*who = (struct explained){.cpu = t->cpu, .tid = t->tid};
	return true;
}

/* The engines of a recorder itself need no mark. */
static bool recorder_runs(void)
{
	bool own = explain_options.instance && trace_is_recorder(explain_options.instance);

	return !own && trace_recorder();
}

/* Writes `hello`, `series` and `armed`, waits for `go`, and opens the files of raw samples. Returns 0
 * after `go`, or an exit status after an `error` line, or -1 if `stop` came first, with the end written. */
static int arm(struct harness *h, const char *name)
{
	struct json *j = &h->j;
	int status;

	h->dma_error =
		harness_options.dma_latency_us >= 0 ? dma_latency_hold(harness_options.dma_latency_us) : 0;
	explain_open(h->explained ? h->explained : measured_by, h);
	write_hello(h, name);
	explain_announce(j);
	h->recorded = recorder_runs();
	json_open(j, NULL, '{');
	json_str(j, "type", "armed");
	json_int(j, "time_ns", clock_now_ns(CLOCK_MONOTONIC));
	json_close(j, '}');
	json_line(j);
	if (!commands_wait_go()) {
		explain_end(j);
		stream_end(j, "stopped", STATUS_OK);
		return -1;
	}
	status = open_samples(h);
	h->asleep_ns = suspended_at_most_ns();
	cpu_counters_begin();
	heat_begin(HEAT_FOLDER, HEAT_WHILE_MEASURING);
	return status;
}

/* The process ends when its last thread ends, so a thread that waits for a held CPU may run on any other. */
static void let_threads_run_anywhere(const struct harness *h)
{
	for (unsigned int i = 0; i < h->thread_count; i++) {
		if (h->threads[i]->tid && !atomic_load(&h->threads[i]->done))
			cpuset_pin(h->threads[i]->tid, &cpus.affinity);
	}
}

/* Runs from `go` to the end. The threads wait at their gate before. Returns 0, or the exit status after an
 * `error` line, or -1 if `stop` came first. */
static int measure(struct harness *h, const char *name)
{
	int status = start(h);

	if (status)
		return status;
	status = h->started ? h->started(h) : 0;
	if (status)
		return status;
	status = arm(h, name);
	return status ? status : h->run(h);
}

int harness_run(struct harness *h, int argc, char **argv)
{
	bool only_check = argc > 1 && !strcmp(argv[argc - 1], "--check");
	int status = open_probe(h, argc - only_check, argv, only_check);

	if (!status && only_check)
		return STATUS_OK;
	if (!status)
		status = h->prepare(h);
	/* No thread has begun yet, and h->threads may be empty. */
	if (status)
		return status < 0 ? STATUS_OK : status;
	status = measure(h, argv[0]);
	if (status)
		let_threads_run_anywhere(h);
	return status < 0 ? STATUS_OK : status;
}

static void begin_series(struct harness *h, struct series *s)
{
	struct json *j = &h->j;

	if (s->samples)
		samples_begin(s);
	series_begin(s);
	json_open(j, NULL, '{');
	json_str(j, "type", "started");
	json_uint(j, "series", s->id);
	json_int(j, "start_ns", s->start_ns);
	json_close(j, '}');
	json_line(j);
}

void harness_go(struct harness *h)
{
	runtime_go();
	if (RUNTIME_IS_COKERNEL && h->peer && h->peer->pid)
		peer_process_go(h->peer);
	explain_go(clock_now_ns(CLOCK_MONOTONIC) + harness_options.warm_up_ns - explain_warm_up_ns());
	for (unsigned int i = 0; i < h->thread_count; i++)
		sem_post(&harness_shared.gate);
	for (unsigned int i = 0; i < h->series_count; i++)
		begin_series(h, h->series[i]);
}

void harness_add_series(struct harness *h, struct series *s)
{
	series_announce(s, &h->j);
	if (harness_options.samples_dir) {
		s->samples = samples_open(harness_options.samples_dir, s->id);
		s->unwritable = !s->samples;
	}
	h->series_count++;
	begin_series(h, s);
}

static bool samples_failed(const struct harness *h)
{
	bool failed = false;

	for (unsigned int i = 0; i < h->series_count; i++)
		failed |=
			h->series[i]->unwritable || (h->series[i]->samples && ferror(h->series[i]->samples));
	return failed;
}

bool harness_stopping(struct harness *h)
{
	if (!atomic_load(&harness_shared.stop) && !atomic_load(&commands_stopped) && stream_written() &&
	    !samples_failed(h))
		return false;
	harness_threads_stop(h->threads, h->thread_count);
	return true;
}

void harness_end_by(struct harness *h, const char *reason)
{
	if (!atomic_load(&harness_shared.stop))
		h->ended_by = reason;
	harness_threads_stop(h->threads, h->thread_count);
}

void harness_pause(int64_t ns)
{
	thread_watch_drained();
	heat_look(clock_now_ns(CLOCK_MONOTONIC));
	if (atomic_load(&harness_shared.stop))
		clock_pause_ns(ns < STOPPING_NS ? ns : STOPPING_NS);
	else
		commands_wait(ns);
}

void harness_drain(struct harness *h, bool (*drain)(struct harness *h, struct json *j), int64_t pause_ns)
{
	h->pause_ns = explain_pause_ns(pause_ns);
	while (drain(h, &h->j)) {
		explain_take(&h->j);
		thread_watch_tell(h);
		harness_pause(h->pause_ns);
		harness_stopping(h);
	}
	drain(h, &h->j);
}

static int first_series_of(const struct harness *h, const struct harness_thread *t)
{
	for (unsigned int i = 0; h->measurers && i < h->series_count; i++) {
		if (h->measurers[i] == t)
			return (int)h->series[i]->id;
	}
	return -1;
}

/* Releases during which a thread did not get its CPU are missed. */
static void miss_given_up(struct harness *h)
{
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	for (unsigned int i = 0; h->measurers && i < h->series_count; i++) {
		int64_t until_ns = h->measurers[i] ? atomic_load(&h->measurers[i]->given_up_ns) : 0;

		if (until_ns && is_latency(h->series[i]) && !h->series[i]->timed)
			series_miss_until(h->series[i], until_ns, now_ns, &h->j);
	}
}

int harness_finish(struct harness *h, const char *reason)
{
	struct json *j = &h->j;

	thread_watch_end();
	for (unsigned int i = 0; i < h->thread_count; i++) {
		pthread_join(h->threads[i]->thread, NULL);
		h->threads[i]->series = first_series_of(h, h->threads[i]);
	}
	for (unsigned int i = 0; i < h->thread_count; i++) {
		if (h->threads[i]->moved && !atomic_load(&h->threads[i]->given_up_ns))
			stream_mark(j, "cpu-lost", SEVERITY_INVALID, h->threads[i]->series,
				    "the kernel moved the measuring thread of CPU %d to another CPU",
				    h->threads[i]->cpu);
	}
	thread_watch_tell(h);
	miss_given_up(h);
	for (unsigned int i = 0; i < h->series_count; i++)
		summary_write(h->series[i], h->measurers ? h->measurers[i] : NULL, &h->j);
	explain_end(j);
	if (RUNTIME_IS_COKERNEL)
		mode_switches_tell(h, j);
	if (h->conclude)
		h->conclude(h, j);
	if (h->recorded || recorder_runs())
		stream_mark(j, "measured-together", SEVERITY_NOTE, -1,
			    "a recorder of rtgauge recorded the kernel's events at the same time");
	if (suspended_at_least_ns() - h->asleep_ns > NS_PER_S / 1000)
		stream_mark(j, "clock-changed", SEVERITY_INVALID, -1,
			    "the machine was suspended during the measurement");
	cpu_counters_write(&cpus.measured, j);
	heat_write(j);
	if (thread_watch_why()) {
		stream_mark(j, "watchdog", SEVERITY_INVALID, -1, "%s", thread_watch_why());
		reason = "watchdog";
	} else if (atomic_load(&harness_shared.over_threshold)) {
		reason = "threshold";
	} else if (h->ended_by) {
		reason = h->ended_by;
	} else if (atomic_load(&harness_shared.stop) && !thread_watch_is_over()) {
		reason = "stopped";
	}
	if (samples_failed(h))
		return error_line(
			STATUS_CANNOT_MEASURE, "output",
			"could not write raw samples to %s, because the disk is full or failed; free space "
			"there",
			harness_options.samples_dir);
	stream_end(j, reason, STATUS_OK);
	return stream_written() ? STATUS_OK : STATUS_CANNOT_MEASURE;
}
