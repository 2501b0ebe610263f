// SPDX-License-Identifier: MIT
#include "harness/harness.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/commands.h"
#include "base/cpuset.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/samples_file.h"
#include "base/stream.h"
#include "harness/clock_cost.h"
#include "harness/peer_process.h"
#include "harness/refusal.h"
#include "rt/dma_latency.h"
#include "rt/policy.h"
#include "rt/runtime.h"
#include "rt/watchdog.h"

const char *const harness_on_off[] = {"off", "on", NULL};
const char *const harness_spaces[] = {"user", "kernel", NULL};

struct harness_options harness_options = {
	.priority = 98,
	.warm_up_ns = NS_PER_S / 5,
	.policy = POLICY_FIFO,
	.memory_lock = 1,
};

#define READY_NS (5 * NS_PER_S)
#define STACK 24576 /* locked in memory for every measured CPU; the deepest calls take a quarter of it */

struct harness_shared harness_shared;

static _Atomic unsigned int measuring; /* threads that are not done */

static void *run(void *arg)
{
	struct harness_thread *t = arg;
	struct cpuset own;

	commands_leave_to_main();
	cpuset_clear(&own);
	cpuset_add(&own, (unsigned int)t->cpu);
	t->tid = gettid();
	t->error = t->free ? 0 : cpuset_pin(0, &own);
	if (!t->error) {
		t->error = t->policy == POLICY_DEADLINE ? deadline_set(0, &t->deadline)
							: policy_set(t->policy, t->priority);
		t->policy_refused = t->error != 0;
	}
	if (!t->error)
		t->error = runtime_thread_begin();
	if (!t->error && t->prepare)
		t->error = t->prepare(t);
	t->schedstat = usage_open();
	usage_read(t->schedstat, &t->before); /* so that the first that counts is quick */
	pthread_getcpuclockid(pthread_self(), &t->cpu_clock);
	atomic_store(&t->ready, true);
	while (sem_wait(&harness_shared.gate))
		;
	if (!t->error && !atomic_load(&harness_shared.stop))
		t->measure(t);
	runtime_thread_end();
	t->moved = t->usage_known && !t->free && sched_getcpu() != t->cpu;
	atomic_store(&t->done, true);
	if (atomic_fetch_sub(&measuring, 1) == 1)
		commands_wake();
	return NULL;
}

/* A thread that is not ready within this time is kept from its CPU by somebody above it. */
static bool wait_ready(const struct harness_thread *t)
{
	int64_t give_up_ns = clock_now_ns(CLOCK_MONOTONIC) + READY_NS;

	while (!atomic_load(&t->ready)) {
		if (clock_now_ns(CLOCK_MONOTONIC) > give_up_ns)
			return false;
		clock_pause_ns(NS_PER_S / 1000);
	}
	return true;
}

int harness_thread_start(struct harness_thread *t)
{
	pthread_attr_t attr;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN + STACK);
	atomic_fetch_add(&measuring, 1);
	error = pthread_create(&t->thread, &attr, run, t);
	pthread_attr_destroy(&attr);
	if (error && harness_memory_limited())
		return harness_no_memory();
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "no thread for CPU %d: %s", t->cpu,
				  strerror(error));
	if (!wait_ready(t))
		return refuse_held_cpu(t->cpu, "its measuring thread", "other CPUs with --cpu");
	if (t->policy_refused && t->policy == POLICY_DEADLINE)
		return refuse_deadline(t->error, &t->deadline, t->free ? -1 : t->cpu);
	if (t->error)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "CPU %d cannot be measured: %s", t->cpu,
				  strerror(t->error));
	return 0;
}

void harness_threads_stop(struct harness_thread *const *threads, unsigned int count)
{
	atomic_store(&harness_shared.stop, true);
	for (unsigned int i = 0; i < count; i++) {
		if (!atomic_load(&threads[i]->done))
			runtime_interrupt(threads[i]->thread);
	}
}

/* What cannot be read stays -1. */
static void since(int64_t *count, int64_t before)
{
	if (*count >= 0)
		*count -= before;
}

static void summary_write(struct series *s, const struct harness_thread *t, struct json *j)
{
	struct usage usage;

	if (t && t->usage_known) {
		usage = t->after;
		since(&usage.voluntary_switches, t->before.voluntary_switches);
		since(&usage.involuntary_switches, t->before.involuntary_switches);
		since(&usage.minor_faults, t->before.minor_faults);
		since(&usage.major_faults, t->before.major_faults);
		since(&usage.cpu_ns, t->before.cpu_ns);
		since(&usage.run_delay_ns, t->before.run_delay_ns);
		if (RUNTIME_IS_COKERNEL)
			since(&usage.mode_switches, t->before.mode_switches);
	}
	series_end(s, atomic_load(&harness_shared.stop), j);
	series_summary(s, t && t->usage_known ? &usage : NULL, j);
	if (s->lost)
		stream_mark(j, "samples-lost", SEVERITY_INVALID, (int)s->id,
			    "%lld samples of CPU %d were measured and could not be kept", (long long)s->lost,
			    s->cpu);
	if (s->impossible && s->timed)
		stream_mark(j, "impossible-latency", SEVERITY_INVALID, (int)s->id,
			    "an end lay before its beginning %lld times: the clocks of the CPUs differ",
			    (long long)s->impossible);
	else if (s->impossible)
		stream_mark(j, "impossible-latency", SEVERITY_INVALID, (int)s->id,
			    "CPU %d woke before its time %lld times: its clock or timer is wrong", s->cpu,
			    (long long)s->impossible);
	if (s->samples && !samples_close(s))
		s->unwritable = true;
}

#define STOPPING_NS (NS_PER_S / 500)

static struct probe_cpus cpus;
static _Atomic uint64_t drain_progress;
static struct watched watched[PROBE_CPUS_MAX];
static struct watchdog dog = {.stop = &harness_shared.stop, .progress = &drain_progress};

static bool takes_policy_other(const struct harness *h)
{
	for (size_t i = 0; i < h->option_count; i++)
		if (h->table[i].value == &harness_options.policy)
			return h->table[i].choices == policy_names || h->table[i].choices == policy_all_names;
	return false;
}

/* Before anything else is done: may we do it at all? */
static int try_permission(const struct harness *h)
{
	/* The kernel decides on a deadline task by its numbers: it is tried on the thread itself. */
	int error = harness_options.policy == POLICY_DEADLINE
			    ? 0
			    : policy_try((enum policy)harness_options.policy, (int)harness_options.priority);

	if (error)
		return refuse_priority(error, (int)harness_options.priority, takes_policy_other(h));
	error = harness_options.memory_lock ? memory_lock() : 0;
	return error ? refuse_memory_lock(error) : 0;
}

/* Options, CPUs and, unless they are only checked, permission and memory lock. 0, the exit status after an
 * `error` line, or -1: help was printed. */
static int open_probe(struct harness *h, int argc, char **argv, bool only_check)
{
	int status = options_parse(h->table, h->option_count, argc, argv);

	if (!status)
		status = runtime_check(argv[0], h->table, h->option_count);
	if (!status && !h->peer)
		status = runtime_join();
	if (status)
		return status;
	stream_begin(&h->j);
	h->cpus = &cpus;
	if (harness_options.duration_ns && harness_options.count)
		return usage_error("give a duration or a count, not both");
	status = explain_check();
	if (!status && h->check)
		status = h->check();
	harness_options.warm_up_ns += explain_warm_up_ns();
	if (!status)
		status = probe_cpus_choose(&harness_options.cpus, &cpus);
	if (!status && !only_check)
		status = try_permission(h);
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
static int start(struct harness *h)
{
	commands_begin(!harness_options.go);
	sem_init(&harness_shared.gate, 0, 0);
	for (unsigned int i = 0; i < h->thread_count; i++) {
		struct harness_thread *t = h->threads[i];
		int status = harness_thread_start(t);

		if (status)
			return status;
		if (i < PROBE_CPUS_MAX)
			watched[i] = (struct watched){t->tid, t->cpu_clock, &t->done, t->free ? -1 : t->cpu,
						      &t->given_up_ns};
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

	stream_hello(j, name, h->table, h->option_count);
	probe_cpus_json(&cpus, j);
	clock_cost_json(j);
	write_dma_latency(h, j);
	if (RUNTIME_IS_COKERNEL)
		json_str(j, "runtime", RUNTIME_NAME);
	if (h->hello)
		h->hello(j);
	json_close(j, '}');
	json_line(j);
	for (unsigned int i = 0; i < h->series_count; i++)
		series_announce(h->series[i], j);
	if (h->dma_error)
		stream_mark(j, "dma-latency-failed", SEVERITY_NOTE, -1,
			    "C-states stay on: /dev/cpu_dma_latency cannot be used (%s)",
			    strerror(h->dma_error));
	if (!harness_options.memory_lock)
		stream_mark(j, "not-locked", SEVERITY_NOTE, -1,
			    "memory was not locked: page faults can add to latencies");
}

static int open_samples(struct harness *h)
{
	for (unsigned int i = 0; harness_options.samples_dir && i < h->series_count; i++) {
		h->series[i]->samples = samples_open(harness_options.samples_dir, h->series[i]->id);
		if (!h->series[i]->samples)
			return error_line(STATUS_CANNOT_MEASURE, "output",
					  "samples cannot be written to %s: %s", harness_options.samples_dir,
					  strerror(errno));
	}
	return 0;
}

/* How long the machine has been suspended since it booted: the difference of two clocks that cannot be
 * read at once. A thread that is preempted between the readings makes the one too large, the other too small.
 */
static int64_t most_asleep_ns(void)
{
	int64_t awake_ns = clock_now_ns(CLOCK_MONOTONIC);

	return runtime_linux_clock_ns(CLOCK_BOOTTIME) - awake_ns;
}

static int64_t least_asleep_ns(void)
{
	int64_t since_boot_ns = runtime_linux_clock_ns(CLOCK_BOOTTIME);

	return since_boot_ns - clock_now_ns(CLOCK_MONOTONIC);
}

static bool is_latency(const struct series *s)
{
	return !s->metric || !strcmp(s->metric, "latency");
}

/* Whose latencies a series has, where the probe does not say it by itself. */
static struct harness *running;

static bool measured_by(const struct series *s, struct explained *who)
{
	const struct harness_thread *t = running->measurers ? running->measurers[s->id] : NULL;

	if (!t || !is_latency(s))
		return false;
	*who = (struct explained){.cpu = t->cpu, .tid = t->tid};
	return true;
}

/* `hello`, `series`, `armed`; waits for `go`; opens the files of raw samples. 0: go; an exit status after an
 * `error` line; -1: stopped before, and the end is written. */
static int arm(struct harness *h, const char *name)
{
	struct json *j = &h->j;
	int status;

	h->dma_error =
		harness_options.dma_latency_us >= 0 ? dma_latency_hold(harness_options.dma_latency_us) : 0;
	running = h;
	explain_open(h->explained ? h->explained : measured_by);
	write_hello(h, name);
	explain_announce(j);
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
	h->asleep_ns = most_asleep_ns();
	return status;
}

/* A process ends when its last thread does: one that waits for a held CPU may go to any other. */
static void let_threads_run_anywhere(const struct harness *h)
{
	for (unsigned int i = 0; i < h->thread_count; i++) {
		if (h->threads[i]->tid && !atomic_load(&h->threads[i]->done))
			cpuset_pin(h->threads[i]->tid, &cpus.affinity);
	}
}

int harness_run(struct harness *h, int argc, char **argv)
{
	bool only_check = argc > 1 && !strcmp(argv[argc - 1], "--check");
	int status = open_probe(h, argc - only_check, argv, only_check);

	if (!status && only_check)
		return STATUS_OK;
	if (!status)
		status = h->make(h);
	/* Until here no thread began, and h->threads may be empty. */
	if (status)
		return status < 0 ? STATUS_OK : status;
	status = start(h);
	if (!status && h->started)
		status = h->started(h);
	if (!status)
		status = arm(h, argv[0]);
	if (!status)
		status = h->run(h);
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

void harness_watch(struct harness *h, int64_t length_ns)
{
	dog.threads = watched;
	dog.count = h->thread_count < PROBE_CPUS_MAX ? h->thread_count : PROBE_CPUS_MAX;
	dog.limit_ns = length_ns;
	dog.hog_percent = h->hog_percent;
	dog.allowed = cpus.affinity;
	pthread_getcpuclockid(pthread_self(), &dog.drain_clock);
	if (harness_options.policy != POLICY_OTHER && watchdog_start(&dog))
		stream_mark(&h->j, "watchdog", SEVERITY_NOTE, -1,
			    "there is no watchdog: its thread could not be started");
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

/* The first series of this CPU; -1: none. */
static int series_on(const struct harness *h, int cpu)
{
	for (unsigned int i = 0; i < h->series_count; i++) {
		if (h->series[i]->cpu == cpu)
			return (int)h->series[i]->id;
	}
	return -1;
}

/* Says once of each thread that it does not get its CPU, and why. */
static void tell_held(struct harness *h)
{
	char holder[160];
	const struct held_thread *held = &dog.held;

	if (!atomic_load(&dog.held_found))
		return;
	stream_mark(
		&h->j, "cpu-held", SEVERITY_DOUBTFUL, series_on(h, held->cpu),
		"%s held CPU %d for %lld ms or more, and its measuring thread could not run: end it, lower its priority, or choose other CPUs with --cpu",
		held->holder_known ? cpu_holder_text(&held->holder, holder, sizeof(holder))
				   : "a task that /proc does not show, or the kernel,",
		held->cpu, (long long)(held->waited_ns / (NS_PER_S / 1000)));
	atomic_store(&dog.held_found, false);
}

void harness_pause(int64_t ns)
{
	atomic_fetch_add(&drain_progress, 1);
	if (atomic_load(&harness_shared.stop))
		clock_pause_ns(ns < STOPPING_NS ? ns : STOPPING_NS);
	else
		commands_wait(ns);
}

void harness_drain(struct harness *h, bool (*take)(struct json *j), int64_t pause_ns)
{
	pause_ns = explain_pause_ns(pause_ns);
	while (take(&h->j)) {
		explain_take(&h->j);
		tell_held(h);
		harness_pause(pause_ns);
		harness_stopping(h);
	}
	take(&h->j);
}

/* The first series that this thread measures; -1: none of its own. */
static int series_of(const struct harness *h, const struct harness_thread *t)
{
	for (unsigned int i = 0; h->measurers && i < h->series_count; i++) {
		if (h->measurers[i] == t)
			return (int)h->series[i]->id;
	}
	return -1;
}

/* How often the threads were handed to Linux while they measured: of all in the result `cokernel`, of each
 * that was in a mark. */
static void tell_mode_switches(const struct harness *h, struct json *j)
{
	const char *cause = runtime_switch_cause();
	int64_t sum = 0;
	unsigned int counted = 0;

	for (unsigned int i = 0; i < h->thread_count; i++) {
		const struct harness_thread *t = h->threads[i];
		int64_t count = t->after.mode_switches - t->before.mode_switches;

		if (!t->usage_known)
			continue;
		counted++;
		sum += count;
		if (RUNTIME_COUNTS_SWITCHES && count)
			stream_mark(
				j, "mode-switches", SEVERITY_DOUBTFUL, series_of(h, t),
				"a thread on CPU %d was handed to Linux %lld times while it measured%s%s: latencies of Linux are among these",
				t->cpu, (long long)count, cause ? ", the last time for " : "",
				cause ? cause : "");
	}
	if (RUNTIME_COUNTS_SWITCHES && h->peer && h->peer->started) {
		counted++;
		sum = h->peer->switches < 0 || sum < 0 ? -1 : sum + h->peer->switches;
		if (h->peer->switches > 0)
			stream_mark(
				j, "mode-switches", SEVERITY_DOUBTFUL, -1,
				"the process beside this one, on CPU %d, was handed to Linux %lld times while it was measured: latencies of Linux are among these",
				h->peer->cpu, (long long)h->peer->switches);
	}
	if (!RUNTIME_COUNTS_SWITCHES)
		sum = runtime_switches_of_all();
	if (!RUNTIME_COUNTS_SWITCHES && sum > 0)
		stream_mark(
			j, "mode-switches", SEVERITY_DOUBTFUL, -1,
			"threads were handed to Linux %lld times while it measured (the co-kernel counts those of the whole machine together): latencies of Linux may be among these",
			(long long)sum);
	else if (sum < 0)
		stream_mark(j, "mode-switches", SEVERITY_NOTE, -1,
			    "how often threads were handed to Linux while it measured is unknown");
	stream_result(j, "cokernel");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_str(j, "name", RUNTIME_NAME);
	json_uint(j, "threads", counted);
	if (sum < 0)
		json_null(j, "mode_switches");
	else
		json_int(j, "mode_switches", sum);
	stream_result_end(j);
}

/* What was due while a thread did not get its CPU is missed. */
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

	atomic_store(&dog.ended, true);
	for (unsigned int i = 0; i < h->thread_count; i++)
		pthread_join(h->threads[i]->thread, NULL);
	for (unsigned int i = 0; i < h->thread_count; i++) {
		if (h->threads[i]->moved && !atomic_load(&h->threads[i]->given_up_ns))
			stream_mark(
				j, "cpu-lost", SEVERITY_INVALID, series_of(h, h->threads[i]),
				"CPU %d was taken from its measuring thread, which went on on another one",
				h->threads[i]->cpu);
	}
	tell_held(h);
	miss_given_up(h);
	for (unsigned int i = 0; i < h->series_count; i++)
		summary_write(h->series[i], h->measurers ? h->measurers[i] : NULL, &h->j);
	explain_end(j);
	if (RUNTIME_IS_COKERNEL)
		tell_mode_switches(h, j);
	if (h->conclude)
		h->conclude(j);
	if (least_asleep_ns() - h->asleep_ns > NS_PER_S / 1000)
		stream_mark(j, "clock-changed", SEVERITY_INVALID, -1,
			    "the machine was suspended while it was measured");
	if (atomic_load(&dog.bitten)) {
		stream_mark(j, "watchdog", SEVERITY_INVALID, -1, "%s", dog.why);
		reason = "watchdog";
	} else if (atomic_load(&harness_shared.over_threshold)) {
		reason = "threshold";
	} else if (h->ended_by) {
		reason = h->ended_by;
	} else if (atomic_load(&harness_shared.stop) && !atomic_load(&dog.over)) {
		reason = "stopped";
	}
	if (samples_failed(h))
		return error_line(
			STATUS_CANNOT_MEASURE, "output",
			"raw samples could not be written to %s: the disk is full or failed; free space there",
			harness_options.samples_dir);
	stream_end(j, reason, STATUS_OK);
	return stream_written() ? STATUS_OK : STATUS_CANNOT_MEASURE;
}
