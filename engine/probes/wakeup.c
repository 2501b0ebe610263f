// SPDX-License-Identifier: MIT
/*
 * wakeup: one measuring thread a CPU sleeps until an absolute time, reads the clock and stores actual -
 * expected (paper row D1; Delgado & Choi 2020, algorithm 1).
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/commands.h"
#include "base/cpuset.h"
#include "base/error.h"
#include "base/options.h"
#include "base/ring.h"
#include "base/samples_file.h"
#include "base/series.h"
#include "base/stream.h"
#include "probes/clock_cost.h"
#include "rt/clock.h"
#include "rt/dma_latency.h"
#include "rt/memory.h"
#include "rt/policy.h"
#include "rt/usage.h"
#include "rt/watchdog.h"
#include "verbs.h"

#define RING_MOST 65536
#define RING_LEAST 1024
#define RING_SPAN_NS (4 * NS_PER_S)
#define DRAIN_NS (NS_PER_S / 5)
#define LEAD_NS (NS_PER_S / 50) /* from `go` to the first release: every thread waits by then */
#define READY_NS (5 * NS_PER_S)
#define STOPPING_NS (NS_PER_S / 500)
#define MEASURED_MOST 1024

enum timer { TIMER_NANOSLEEP, TIMER_TIMERFD };
enum phase { PHASE_RANDOM, PHASE_FIXED };

static const char *const timer_names[] = {"nanosleep", "timerfd", NULL};
static const char *const phase_names[] = {"random", "fixed", NULL};
static const char *const on_off[] = {"off", "on", NULL};

static struct {
	struct cpuset cpus;
	int64_t interval_ns, priority, duration_ns, count, warm_up_ns, stop_at_ns, dma_latency_us;
	int policy, timer, phase, memory_lock;
	const char *samples_dir;
	bool go;
} wanted = {
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
	 .value = &wanted.cpus,
	 .help = "CPUs to measure: 0-3,6; default all allowed"},
	{.name = "interval-ns",
	 .kind = OPTION_INT,
	 .value = &wanted.interval_ns,
	 .min = INT64_MIN,
	 .max = 3600 * NS_PER_S,
	 .help = "between two releases (1000000)"},
	{.name = "policy",
	 .kind = OPTION_CHOICE,
	 .value = &wanted.policy,
	 .choices = policy_names,
	 .help = "scheduling"},
	{.name = "priority",
	 .kind = OPTION_INT,
	 .value = &wanted.priority,
	 .min = 1,
	 .max = 99,
	 .help = "real-time priority (98)"},
	{.name = "timer",
	 .kind = OPTION_CHOICE,
	 .value = &wanted.timer,
	 .choices = timer_names,
	 .help = "waits by"},
	{.name = "phase",
	 .kind = OPTION_CHOICE,
	 .value = &wanted.phase,
	 .choices = phase_names,
	 .help = "of the first release against the tick and the other CPUs"},
	{.name = "duration-ns",
	 .kind = OPTION_INT,
	 .value = &wanted.duration_ns,
	 .min = 0,
	 .max = INT64_MAX / 4,
	 .help = "of the measured phase; 0: until stopped"},
	{.name = "count",
	 .kind = OPTION_INT,
	 .value = &wanted.count,
	 .min = 0,
	 .max = INT64_MAX / 4,
	 .help = "activations a CPU in the measured phase, in place of a duration"},
	{.name = "warm-up-ns",
	 .kind = OPTION_INT,
	 .value = &wanted.warm_up_ns,
	 .min = 0,
	 .max = 3600 * NS_PER_S,
	 .help = "set aside at the beginning (500000000)"},
	{.name = "stop-at-ns",
	 .kind = OPTION_INT,
	 .value = &wanted.stop_at_ns,
	 .min = 0,
	 .max = INT64_MAX / 4,
	 .help = "end when a latency is larger; 0: never"},
	{.name = "dma-latency-us",
	 .kind = OPTION_INT,
	 .value = &wanted.dma_latency_us,
	 .min = -1,
	 .max = INT32_MAX,
	 .help = "keep C-states within this exit latency (0); -1: leave them"},
	{.name = "memory-lock",
	 .kind = OPTION_CHOICE,
	 .value = &wanted.memory_lock,
	 .choices = on_off,
	 .help = "lock memory"},
	{.name = "samples-dir",
	 .kind = OPTION_TEXT,
	 .value = &wanted.samples_dir,
	 .help = "folder for raw samples"},
	{.name = "go",
	 .kind = OPTION_FLAG,
	 .value = &wanted.go,
	 .help = "begin at once and do not read standard input"},
};

#define OPTIONS (sizeof(table) / sizeof(table[0]))

/* A measuring thread. The first part is its own while it measures; the rest is read by others before and
 * after. */
struct task {
	struct ring ring;

	_Alignas(CACHE_LINE) int64_t position; /* activations that are over, missed ones too */
	int64_t pending_lost;
	uint64_t limit_ns; /* a latency that reaches it is looked at: missed activations, the threshold, what
			      cannot be */

	int cpu, timer_fd, schedstat, error;
	int64_t start_ns, warm_up_count, total_count;
	uint64_t usual_limit_ns;
	struct usage before, after;
	pthread_t thread;
	pid_t tid;
	clockid_t cpu_clock;
	_Atomic bool ready, done;
	bool usage_known, moved;
	struct series *series;
};

static struct task *tasks;
static unsigned int task_count;
static sem_t start_gate;
static _Alignas(CACHE_LINE) _Atomic bool stop_flag; /* alone: every measuring thread reads it each time */
static _Alignas(CACHE_LINE) _Atomic bool over_threshold;
static _Atomic uint64_t drain_progress;
static struct watched watched[MEASURED_MOST];
static struct watchdog dog = {.stop = &stop_flag, .progress = &drain_progress};

/*
 * The rare half of an activation: the sample reaches the limit or the ring was full. Gives how many
 * activations are over with it, at least 1. As long as activations wait to be told as lost the limit is 0:
 * none may overtake them.
 */
static __attribute__((noinline)) int64_t look_closer(struct task *t, int64_t latency)
{
	int64_t missed, left = t->total_count - t->position - 1;

	if (t->pending_lost) {
		if (ring_push(&t->ring, SAMPLE_LOST(t->pending_lost))) {
			t->pending_lost = 0;
			t->limit_ns = t->usual_limit_ns;
		}
	}
	if (latency < 0) {
		if (t->pending_lost || !ring_push(&t->ring, SAMPLE_IMPOSSIBLE)) {
			t->pending_lost++;
			t->limit_ns = 0;
		}
		return 1;
	}
	if (wanted.stop_at_ns && latency > wanted.stop_at_ns && t->position >= t->warm_up_count) {
		atomic_store(&over_threshold, true);
		atomic_store(&stop_flag, true);
	}
	missed = series_missed_after(latency, wanted.interval_ns);
	if (missed > left)
		missed = left;
	if (t->pending_lost || !ring_push(&t->ring, latency)) {
		t->pending_lost += 1 + missed;
		t->limit_ns = 0;
	}
	return 1 + missed;
}

static inline void wait_until(const struct task *t, const struct timespec *next, bool by_timerfd)
{
	if (by_timerfd) {
		const struct itimerspec once = {.it_value = *next};
		uint64_t expirations;

		timerfd_settime(t->timer_fd, TFD_TIMER_ABSTIME, &once, NULL);
		if (read(t->timer_fd, &expirations, sizeof(expirations)) < 0)
			return; /* interrupted: the stop flag is set */
		return;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

/* The measured path: wait, read the clock, store. Ends at activation `end` or at the stop flag. */
static inline __attribute__((always_inline)) void measure(struct task *t, int64_t end, bool by_timerfd)
{
	const time_t interval_s = (time_t)(wanted.interval_ns / NS_PER_S);
	const long interval_rest_ns = (long)(wanted.interval_ns % NS_PER_S);
	struct timespec next = ns_timespec(t->start_ns + t->position * wanted.interval_ns), now;
	int64_t left = end - t->position;

	while (left > 0) {
		int64_t latency;

		wait_until(t, &next, by_timerfd);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (__builtin_expect(atomic_load_explicit(&stop_flag, memory_order_relaxed), 0))
			break;
		latency = (int64_t)(now.tv_sec - next.tv_sec) * NS_PER_S + (now.tv_nsec - next.tv_nsec);
		if (__builtin_expect((uint64_t)latency >= t->limit_ns, 0) ||
		    __builtin_expect(!ring_push(&t->ring, latency), 0)) {
			int64_t over;

			t->position = end - left;
			over = look_closer(t, latency);
			left -= over;
			next = ns_timespec(timespec_ns(&next) + over * wanted.interval_ns);
			continue;
		}
		left--;
		next.tv_sec += interval_s;
		next.tv_nsec += interval_rest_ns;
		if (next.tv_nsec >= NS_PER_S) {
			next.tv_nsec -= NS_PER_S;
			next.tv_sec++;
		}
	}
	t->position = end - left;
}

static void run_phase(struct task *t, int64_t end)
{
	if (t->position >= end)
		return;
	if (wanted.timer == TIMER_TIMERFD)
		measure(t, end, true);
	else
		measure(t, end, false);
}

static void pause_ns(int64_t ns)
{
	struct timespec pause = ns_timespec(ns);

	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static void *run_task(void *arg)
{
	struct task *t = arg;
	struct cpuset own;

	commands_leave_to_main();
	cpuset_clear(&own);
	cpuset_add(&own, (unsigned int)t->cpu);
	t->tid = gettid();
	t->error = cpuset_pin(&own);
	if (!t->error)
		t->error = policy_set((enum policy)wanted.policy, (int)wanted.priority);
	if (!t->error && wanted.timer == TIMER_TIMERFD) {
		t->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		t->error = t->timer_fd < 0 ? errno : 0;
	}
	t->schedstat = usage_open();
	usage_read(t->schedstat, &t->before); /* so that the first that counts is quick */
	pthread_getcpuclockid(pthread_self(), &t->cpu_clock);
	atomic_store(&t->ready, true);
	while (sem_wait(&start_gate))
		;
	if (!t->error && !atomic_load(&stop_flag)) {
		run_phase(t, t->warm_up_count);
		usage_read(t->schedstat, &t->before);
		run_phase(t, t->total_count);
		usage_read(t->schedstat, &t->after);
		t->usage_known = true;
		t->moved = sched_getcpu() != t->cpu;
	}
	/* Activations that a full ring kept out to the last are told when there is room again. */
	while (t->pending_lost && !ring_push(&t->ring, SAMPLE_LOST(t->pending_lost)))
		pause_ns(DRAIN_NS);
	atomic_store(&t->done, true);
	return NULL;
}

static int check_numbers(void)
{
	struct timespec resolution;
	int64_t least;

	if (clock_getres(CLOCK_MONOTONIC, &resolution))
		return error_line(STATUS_CANNOT_MEASURE, "clock", "CLOCK_MONOTONIC cannot be read: %s",
				  strerror(errno));
	least = timespec_ns(&resolution);
	if (wanted.interval_ns <= 0)
		return error_line(STATUS_USAGE, "interval",
				  "the interval must be longer than 0; give one such as 1ms or 100us");
	if (wanted.interval_ns < least || wanted.interval_ns < 1000)
		return error_line(STATUS_USAGE, "interval",
				  "an interval of %" PRId64 " ns is shorter than %s (%" PRId64
				  " ns); give a longer one",
				  wanted.interval_ns,
				  least > 1000 ? "the clock's resolution" : "what a thread can sleep",
				  least > 1000 ? least : INT64_C(1000));
	if (wanted.duration_ns && wanted.count)
		return error_line(STATUS_USAGE, "usage", "give a duration or a count, not both");
	if (wanted.count && wanted.count > INT64_MAX / 4 / wanted.interval_ns)
		return error_line(STATUS_USAGE, "usage",
				  "that count of activations takes more than 70 years");
	return 0;
}

/* A CPU outside of the affinity may be used where the cpuset lets us go there. */
static bool may_use(int cpu, const struct cpuset *allowed)
{
	struct cpuset one;
	bool may;

	if (cpuset_has(allowed, (unsigned int)cpu))
		return true;
	cpuset_clear(&one);
	cpuset_add(&one, (unsigned int)cpu);
	may = !cpuset_pin(&one);
	return !cpuset_pin(allowed) && may;
}

static int choose_cpus(struct cpuset *measured, struct cpuset *allowed, struct cpuset *online,
		       struct cpuset *present)
{
	if (!cpuset_allowed(allowed))
		return error_line(STATUS_CANNOT_MEASURE, "internal", "the CPU affinity cannot be read");
	if (!cpuset_online(online))
		*online = *allowed;
	if (!cpuset_present(present))
		*present = *online;
	*measured = cpuset_count(&wanted.cpus) ? wanted.cpus : *allowed;
	for (int cpu = cpuset_next(measured, 0); cpu >= 0;
	     cpu = cpuset_next(measured, (unsigned int)cpu + 1)) {
		char text[256];

		if (!cpuset_has(present, (unsigned int)cpu))
			return error_line(STATUS_USAGE, "cpu-missing",
					  "there is no CPU %d; this machine has %s", cpu,
					  cpuset_format(present, text, sizeof(text)));
		if (!cpuset_has(online, (unsigned int)cpu))
			return error_line(STATUS_USAGE, "cpu-offline",
					  "CPU %d is offline; online are %s (echo 1 > "
					  "/sys/devices/system/cpu/cpu%d/online brings it back)",
					  cpu, cpuset_format(online, text, sizeof(text)), cpu);
		if (!may_use(cpu, allowed))
			return error_line(
				STATUS_USAGE, "cpu-not-allowed",
				"CPU %d is not allowed to this process by its cpuset; allowed are %s", cpu,
				cpuset_format(allowed, text, sizeof(text)));
	}
	if (cpuset_count(measured) > MEASURED_MOST)
		return error_line(STATUS_USAGE, "usage",
				  "more than %d CPUs at once are not measured; give --cpu", MEASURED_MOST);
	return 0;
}

/* Before anything else is done: may we do it at all? */
static int try_permission(void)
{
	char text[512];
	int error = policy_try((enum policy)wanted.policy, (int)wanted.priority);

	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "permission-rt", "%s",
				  policy_refusal(error, (int)wanted.priority, text, sizeof(text)));
	error = wanted.memory_lock ? memory_lock() : 0;
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "memory-lock", "%s",
				  memory_refusal(error, text, sizeof(text)));
	return 0;
}

static int no_memory(void)
{
	char text[512];

	if (wanted.memory_lock && memory_limited())
		return error_line(STATUS_CANNOT_MEASURE, "memory-lock", "%s",
				  memory_refusal(ENOMEM, text, sizeof(text)));
	return error_line(STATUS_CANNOT_MEASURE, "internal", "not enough memory for %u CPUs; measure fewer",
			  task_count);
}

static size_t ring_size(void)
{
	size_t size = RING_LEAST;

	while (size < RING_MOST && (int64_t)size * wanted.interval_ns < RING_SPAN_NS)
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
		t->warm_up_count = divide_up(wanted.warm_up_ns, wanted.interval_ns);
		t->total_count = INT64_MAX;
		if (wanted.count)
			t->total_count = t->warm_up_count + wanted.count;
		else if (wanted.duration_ns)
			t->total_count = t->warm_up_count + divide_up(wanted.duration_ns, wanted.interval_ns);
		t->usual_limit_ns = (uint64_t)wanted.interval_ns + 1;
		if (wanted.stop_at_ns && wanted.stop_at_ns < wanted.interval_ns)
			t->usual_limit_ns = (uint64_t)wanted.stop_at_ns + 1;
		t->limit_ns = t->usual_limit_ns;
		t->series->id = i;
		t->series->cpu = cpu;
		t->series->interval_ns = wanted.interval_ns;
		t->series->warm_up_count = t->warm_up_count;
		t->series->total_count = t->total_count;
		t->series->measured_ns = wanted.duration_ns ? wanted.duration_ns
					 : wanted.count	    ? wanted.count * wanted.interval_ns
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
		pause_ns(NS_PER_S / 1000);
	}
	return true;
}

static int start_threads(void)
{
	pthread_attr_t attr;
	int status = 0;

	sem_init(&start_gate, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN + 49152);
	for (unsigned int i = 0; i < task_count && !status; i++) {
		struct task *t = &tasks[i];
		int error = pthread_create(&t->thread, &attr, run_task, t);

		if (error && wanted.memory_lock && memory_limited())
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

static void write_hello(struct json *j, const struct cpuset *measured, const struct cpuset *allowed,
			const struct cpuset *online, const struct cpuset *present, int dma_error)
{
	static struct clock_cost cost;
	int error = clock_cost_measure(CLOCK_MONOTONIC, 10000, NS_PER_S / 10, &cost);

	stream_hello(j, "wakeup", table, OPTIONS);
	json_open(j, "cpus", '[');
	for (unsigned int i = 0; i < task_count; i++)
		json_int(j, NULL, tasks[i].cpu);
	json_close(j, ']');
	json_open(j, "cpus_not_measured", '[');
	for (int cpu = cpuset_next(present, 0); cpu >= 0; cpu = cpuset_next(present, (unsigned int)cpu + 1)) {
		if (cpuset_has(measured, (unsigned int)cpu))
			continue;
		json_open(j, NULL, '{');
		json_int(j, "cpu", cpu);
		json_str(j, "reason",
			 !cpuset_has(online, (unsigned int)cpu)	   ? "offline"
			 : !cpuset_has(allowed, (unsigned int)cpu) ? "not-allowed"
								   : "not-asked");
		json_close(j, '}');
	}
	json_close(j, ']');
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
	if (wanted.dma_latency_us < 0)
		json_null(j, "wanted_us");
	else
		json_int(j, "wanted_us", wanted.dma_latency_us);
	json_str(j, "state", wanted.dma_latency_us < 0 ? "off" : dma_error ? "failed" : "set");
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
	if (!wanted.memory_lock)
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
	for (unsigned int i = 0; wanted.samples_dir && i < task_count; i++) {
		tasks[i].series->samples = samples_open(wanted.samples_dir, i);
		if (!tasks[i].series->samples)
			return error_line(STATUS_CANNOT_MEASURE, "output",
					  "samples cannot be written to %s: %s", wanted.samples_dir,
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

		t->start_ns = base_ns + (wanted.phase == PHASE_RANDOM ? random_below(wanted.interval_ns) : 0);
		t->series->start_ns = t->start_ns;
	}
	for (unsigned int i = 0; i < task_count; i++)
		sem_post(&start_gate);
	for (unsigned int i = 0; i < task_count; i++) {
		struct task *t = &tasks[i];

		if (t->series->samples)
			samples_begin(t->series, wanted.duration_ns);
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
static void settle_drain(const struct cpuset *measured, const struct cpuset *allowed)
{
	struct cpuset others = *allowed;

	for (size_t i = 0; i < CPUSET_MAX / 64; i++)
		others.word[i] &= ~measured->word[i];
	if (cpuset_count(&others))
		cpuset_pin(&others);
	policy_set(POLICY_OTHER, 0);	   /* whatever the process was started with */
	setpriority(PRIO_PROCESS, 0, -20); /* where it is refused the ring is what there is */
}

static void stop_threads(void)
{
	atomic_store(&stop_flag, true);
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
	bool stopped = atomic_load(&stop_flag);
	const char *reason = wanted.count ? "count" : "duration";

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
	} else if (atomic_load(&over_threshold)) {
		reason = "threshold";
	} else if (stopped) {
		reason = "stopped";
	}
	if (samples_failed())
		return error_line(STATUS_CANNOT_MEASURE, "output",
				  "raw samples could not be written to %s: the disk is full or failed; free "
				  "space there",
				  wanted.samples_dir);
	stream_end(j, reason, STATUS_OK);
	return stream_written() ? STATUS_OK : STATUS_CANNOT_MEASURE;
}

int verb_wakeup(int argc, char **argv)
{
	struct cpuset measured, allowed, online, present;
	int64_t asleep_ns, drain_ns = DRAIN_NS;
	int status, dma_error;
	struct json j;

	status = options_parse(table, OPTIONS, argc, argv);
	if (status)
		return status < 0 ? STATUS_OK : status;
	stream_begin(&j);
	status = check_numbers();
	if (!status)
		status = choose_cpus(&measured, &allowed, &online, &present);
	if (!status)
		status = try_permission();
	if (!status)
		status = make_tasks(&measured);
	if (status)
		return status;
	commands_begin(!wanted.go);
	status = start_threads();
	if (status)
		return status;
	settle_drain(&measured, &allowed);
	dma_error = wanted.dma_latency_us >= 0 ? dma_latency_hold(wanted.dma_latency_us) : 0;
	write_hello(&j, &measured, &allowed, &online, &present, dma_error);
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
		dog.limit_ns = tasks[0].total_count * wanted.interval_ns;
	if (wanted.policy != POLICY_OTHER && watchdog_start(&dog))
		stream_mark(&j, "watchdog", SEVERITY_NOTE, -1,
			    "there is no watchdog: its thread could not be started");
	if (ring_size() * (uint64_t)wanted.interval_ns / 4 < (uint64_t)drain_ns)
		drain_ns = (int64_t)ring_size() * wanted.interval_ns / 4;
	while (drain(&j)) {
		bool stopping = atomic_load(&stop_flag);

		if (stopping)
			pause_ns(STOPPING_NS);
		else
			commands_wait(drain_ns);
		/* Again and again: a signal that comes just before a thread sleeps does not wake it. */
		if (stopping || atomic_load(&commands_stopped) || !stream_written() || samples_failed())
			stop_threads();
	}
	drain(&j);
	atomic_store(&dog.ended, true);
	return finish(&j, asleep_ns);
}
