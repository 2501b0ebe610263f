// SPDX-License-Identifier: MIT
#include "frame/frame.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "base/commands.h"
#include "base/error.h"
#include "base/samples_file.h"
#include "base/stream.h"
#include "frame/clock_cost.h"
#include "frame/summary.h"
#include "rt/clock.h"
#include "rt/dma_latency.h"
#include "rt/memory.h"
#include "rt/policy.h"
#include "rt/watchdog.h"

#define STOPPING_NS (NS_PER_S / 500)

static struct probe_cpus cpus;
static _Atomic uint64_t drain_progress;
static struct watched watched[PROBE_CPUS_MOST];
static struct watchdog dog = {.stop = &frame_shared.stop, .progress = &drain_progress};

static bool takes_policy_other(const struct frame *f)
{
	for (size_t i = 0; i < f->options; i++)
		if (f->table[i].value == &frame_wanted.policy)
			return f->table[i].choices == policy_names || f->table[i].choices == policy_all_names;
	return false;
}

/* Before anything else is done: may we do it at all? */
static int try_permission(const struct frame *f)
{
	char text[512];
	/* The kernel decides on a deadline task by its numbers: it is tried on the thread itself. */
	int error = frame_wanted.policy == POLICY_DEADLINE
			    ? 0
			    : policy_try((enum policy)frame_wanted.policy, (int)frame_wanted.priority);

	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "permission-rt", "%s",
				  policy_refusal(error, (int)frame_wanted.priority, takes_policy_other(f),
						 text, sizeof(text)));
	error = frame_wanted.memory_lock ? memory_lock() : 0;
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "memory-lock", "%s",
				  memory_refusal(error, text, sizeof(text)));
	return 0;
}

/* Options, CPUs, permission, memory lock. 0, the exit status after an `error` line, or -1: help was printed.
 */
static int open_probe(struct frame *f, int argc, char **argv)
{
	int status = options_parse(f->table, f->options, argc, argv);

	if (status)
		return status;
	stream_begin(&f->j);
	f->cpus = &cpus;
	if (frame_wanted.duration_ns && frame_wanted.count)
		return error_line(STATUS_USAGE, "usage", "give a duration or a count, not both");
	status = f->check ? f->check() : 0;
	if (!status)
		status = probe_cpus_choose(&frame_wanted.cpus, &cpus);
	if (!status)
		status = try_permission(f);
	return status;
}

/* The thread that drains keeps away from the measured CPUs where there are others, and is no real-time
 * thread. */
static void settle_drain(void)
{
	probe_cpus_leave(&cpus);
	policy_set(POLICY_OTHER, 0);	   /* whatever the process was started with */
	setpriority(PRIO_PROCESS, 0, -20); /* where it is refused the ring is what there is */
}

/* Starts the threads. 0, or the exit status after an `error` line. */
static int start(struct frame *f)
{
	commands_begin(!frame_wanted.go);
	sem_init(&frame_shared.gate, 0, 0);
	for (unsigned int i = 0; i < f->thread_count; i++) {
		struct frame_thread *t = f->threads[i];
		int status = frame_thread_start(t);

		if (status)
			return status;
		if (i < PROBE_CPUS_MOST)
			watched[i] = (struct watched){t->tid, t->cpu_clock, &t->done};
	}
	settle_drain();
	return 0;
}

static void write_dma_latency(const struct frame *f, struct json *j)
{
	json_open(j, "dma_latency", '{');
	if (frame_wanted.dma_latency_us < 0)
		json_null(j, "wanted_us");
	else
		json_int(j, "wanted_us", frame_wanted.dma_latency_us);
	json_str(j, "state", frame_wanted.dma_latency_us < 0 ? "off" : f->dma_error ? "failed" : "set");
	json_close(j, '}');
}

static void write_hello(struct frame *f)
{
	struct json *j = &f->j;

	stream_hello(j, f->name, f->table, f->options);
	probe_cpus_json(&cpus, j);
	clock_cost_json(j);
	write_dma_latency(f, j);
	if (f->hello)
		f->hello(j);
	json_close(j, '}');
	json_line(j);
	for (unsigned int i = 0; i < f->series_count; i++)
		series_announce(f->series[i], j);
	if (f->dma_error)
		stream_mark(j, "dma-latency-failed", SEVERITY_NOTE, -1,
			    "C-states stay on: /dev/cpu_dma_latency cannot be used (%s)",
			    strerror(f->dma_error));
	if (!frame_wanted.memory_lock)
		stream_mark(j, "not-locked", SEVERITY_NOTE, -1,
			    "memory was not locked: page faults can add to latencies");
}

static int open_samples(struct frame *f)
{
	for (unsigned int i = 0; frame_wanted.samples_dir && i < f->series_count; i++) {
		f->series[i]->samples = samples_open(frame_wanted.samples_dir, f->series[i]->id);
		if (!f->series[i]->samples)
			return error_line(STATUS_CANNOT_MEASURE, "output",
					  "samples cannot be written to %s: %s", frame_wanted.samples_dir,
					  strerror(errno));
	}
	return 0;
}

/* `hello`, `series`, `armed`; waits for `go`; opens the files of raw samples. 0: go; an exit status after an
 * `error` line; -1: stopped before, and the end is written. */
static int arm(struct frame *f)
{
	struct json *j = &f->j;
	int status;

	f->dma_error = frame_wanted.dma_latency_us >= 0 ? dma_latency_hold(frame_wanted.dma_latency_us) : 0;
	write_hello(f);
	json_open(j, NULL, '{');
	json_str(j, "type", "armed");
	json_int(j, "time_ns", clock_now_ns(CLOCK_MONOTONIC));
	json_close(j, '}');
	json_line(j);
	if (!commands_wait_go()) {
		stream_end(j, "stopped", STATUS_OK);
		return -1;
	}
	status = open_samples(f);
	f->asleep_ns = clock_now_ns(CLOCK_BOOTTIME) - clock_now_ns(CLOCK_MONOTONIC);
	return status;
}

int frame_run(struct frame *f, int argc, char **argv)
{
	int status = open_probe(f, argc, argv);

	if (!status)
		status = f->make(f);
	if (!status)
		status = start(f);
	if (!status && f->started)
		status = f->started(f);
	if (!status)
		status = arm(f);
	if (!status)
		return f->run(f);
	return status < 0 ? STATUS_OK : status;
}

void frame_go(struct frame *f)
{
	struct json *j = &f->j;

	for (unsigned int i = 0; i < f->thread_count; i++)
		sem_post(&frame_shared.gate);
	for (unsigned int i = 0; i < f->series_count; i++) {
		struct series *s = f->series[i];

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
}

void frame_watch(struct frame *f, int64_t length_ns)
{
	dog.threads = watched;
	dog.count = f->thread_count < PROBE_CPUS_MOST ? f->thread_count : PROBE_CPUS_MOST;
	dog.limit_ns = length_ns;
	dog.hog_percent = f->hog_percent;
	pthread_getcpuclockid(pthread_self(), &dog.drain_clock);
	if (frame_wanted.policy != POLICY_OTHER && watchdog_start(&dog))
		stream_mark(&f->j, "watchdog", SEVERITY_NOTE, -1,
			    "there is no watchdog: its thread could not be started");
}

static bool samples_failed(const struct frame *f)
{
	bool failed = false;

	for (unsigned int i = 0; i < f->series_count; i++)
		failed |=
			f->series[i]->unwritable || (f->series[i]->samples && ferror(f->series[i]->samples));
	return failed;
}

bool frame_stopping(struct frame *f)
{
	if (!atomic_load(&frame_shared.stop) && !atomic_load(&commands_stopped) && stream_written() &&
	    !samples_failed(f))
		return false;
	frame_threads_stop(f->threads, f->thread_count);
	return true;
}

void frame_end_by(struct frame *f, const char *reason)
{
	if (!atomic_load(&frame_shared.stop))
		f->ended_by = reason;
	frame_threads_stop(f->threads, f->thread_count);
}

void frame_pause(int64_t ns)
{
	atomic_fetch_add(&drain_progress, 1);
	if (atomic_load(&frame_shared.stop))
		clock_pause_ns(ns < STOPPING_NS ? ns : STOPPING_NS);
	else
		commands_wait(ns);
}

void frame_drain(struct frame *f, bool (*take)(struct json *j), int64_t pause_ns)
{
	while (take(&f->j)) {
		frame_pause(pause_ns);
		frame_stopping(f);
	}
	take(&f->j);
}

/* The first series that this thread measures; -1: none of its own. */
static int series_of(const struct frame *f, const struct frame_thread *t)
{
	for (unsigned int i = 0; f->measurers && i < f->series_count; i++) {
		if (f->measurers[i] == t)
			return (int)f->series[i]->id;
	}
	return -1;
}

int frame_finish(struct frame *f, const char *reason)
{
	struct json *j = &f->j;

	atomic_store(&dog.ended, true);
	for (unsigned int i = 0; i < f->thread_count; i++)
		pthread_join(f->threads[i]->thread, NULL);
	for (unsigned int i = 0; i < f->thread_count; i++) {
		if (f->threads[i]->moved)
			stream_mark(
				j, "cpu-lost", SEVERITY_INVALID, series_of(f, f->threads[i]),
				"CPU %d was taken from its measuring thread, which went on on another one",
				f->threads[i]->cpu);
	}
	for (unsigned int i = 0; i < f->series_count; i++)
		summary_write(f->series[i], f->measurers ? f->measurers[i] : NULL, &f->j);
	if (f->conclude)
		f->conclude(j);
	if (clock_now_ns(CLOCK_BOOTTIME) - clock_now_ns(CLOCK_MONOTONIC) - f->asleep_ns > NS_PER_S / 1000)
		stream_mark(j, "clock-changed", SEVERITY_INVALID, -1,
			    "the machine was suspended while it was measured");
	if (atomic_load(&dog.bitten)) {
		stream_mark(j, "watchdog", SEVERITY_INVALID, -1, "%s", dog.why);
		reason = "watchdog";
	} else if (atomic_load(&frame_shared.over_threshold)) {
		reason = "threshold";
	} else if (f->ended_by) {
		reason = f->ended_by;
	} else if (atomic_load(&frame_shared.stop)) {
		reason = "stopped";
	}
	if (samples_failed(f))
		return error_line(STATUS_CANNOT_MEASURE, "output",
				  "raw samples could not be written to %s: the disk is full or failed; free "
				  "space there",
				  frame_wanted.samples_dir);
	stream_end(j, reason, STATUS_OK);
	return stream_written() ? STATUS_OK : STATUS_CANNOT_MEASURE;
}
