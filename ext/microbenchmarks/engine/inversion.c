// SPDX-License-Identifier: MIT
/*
 * inversion: does a high-priority task starve while it waits for a lock that a low task holds and a middle
 * task computes (Garre et al. 2014, sec. 3.2, fig. 2)? Three FIFO tasks run on one CPU, one trial a burst.
 * Low takes the lock and makes high ready; high asks for the lock. Low then makes middle ready, and
 * continues in its critical section, which takes a set time on the CPU. Middle computes until high has the
 * lock, or up to the probe's limit; high has then starved. High's wait begins when it is made ready.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/usage.h"
#include "base/verbs.h"
#include "harness/burst.h"
#include "harness/cpus.h"
#include "harness/harness.h"
#include "rt/lock.h"

enum { LOW, MIDDLE, HIGH, TASKS };

static const char *const lock_names[] = {
	"all", "pi-mutex", "mutex", "ceiling-mutex", "semaphore", "futex", "spin", NULL,
};
#define LOCK_ALL 0
#define LOCKS_MAX 6

static int lock = LOCK_ALL;
static int64_t section_ns = 2000000, limit_ns = 100000000, trials = 3;

static const struct option_entry table[] = {
	{.shared = harness_option_cpu},
	{.name = "lock",
	 .kind = OPTION_CHOICE,
	 .value = &lock,
	 .choices = lock_names,
	 .help = "kind of lock that the low-priority task takes"},
	{.name = "section-ns",
	 .kind = OPTION_INT,
	 .value = &section_ns,
	 .min = 10000,
	 .max = 100000000,
	 .help = "CPU time that the low-priority task uses while it holds the lock"},
	{.name = "limit-ns",
	 .kind = OPTION_INT,
	 .value = &limit_ns,
	 .min = 1000000,
	 .max = 500000000,
	 .help = "how long the high-priority task waits before it counts as starved"},
	{.name = "trials",
	 .kind = OPTION_INT,
	 .value = &trials,
	 .min = 1,
	 .max = 1000,
	 .help = "number of times to try each kind of lock"},
	{.shared = harness_option_priority,
	 .min = 3,
	 .help = "priority of the high-priority task; the other two tasks have priorities 1 and 2 lower"},
	{.shared = harness_options_machine},
	{0},
};

/* A kind of lock, and the results of its trials. */
struct kind {
	enum lock_kind lock;
	int error; /* this runtime lacks the lock */
	struct series series;
	int64_t done, starved, gave_up, wait_max_ns, held_max_ns;
};

struct state {
	struct kind *kinds[LOCKS_MAX];
	struct series *series[LOCKS_MAX];
	unsigned int kind_count, kind_now;
	struct burst_task *tasks[TASKS];
};

/* State that the three tasks of a trial share. */
static struct lock lock_now;
static struct {
	sem_t middle, high;
	int64_t ready_ns, ended_ns, taken_ns, released_ns;
	bool starved, gave_up;
	_Atomic bool high_has_it;
} trial;

/* The critical section. It takes this much time on the CPU, even if others take the CPU meanwhile. The
 * middle task ends at the limit, so this section always ends. */
static void hold(void)
{
	int64_t began_ns = usage_own_cpu_ns();

	while (usage_own_cpu_ns() - began_ns < section_ns)
		;
}

static void run_low(struct burst_task *t)
{
	burst_meet(t->burst);
	lock_take(&lock_now, 0);
	trial.taken_ns = clock_now_ns(CLOCK_MONOTONIC);
	trial.ready_ns = trial.taken_ns;
	sem_post(&trial.high);
	sem_post(&trial.middle);
	hold();
	trial.released_ns = clock_now_ns(CLOCK_MONOTONIC);
	lock_give(&lock_now);
}

static void run_middle(struct burst_task *t)
{
	int64_t end_ns;

	burst_meet(t->burst);
	while (sem_wait(&trial.middle))
		;
	end_ns = trial.ready_ns + limit_ns;
	while (!atomic_load(&trial.high_has_it)) {
		if (clock_now_ns(CLOCK_MONOTONIC) >= end_ns) {
			trial.starved = true;
			return;
		}
	}
}

static void run_high(struct burst_task *t)
{
	bool has_it;

	burst_meet(t->burst);
	while (sem_wait(&trial.high))
		;
	has_it = lock_take(&lock_now, trial.ready_ns + limit_ns);
	trial.ended_ns = clock_now_ns(CLOCK_MONOTONIC);
	atomic_store(&trial.high_has_it, true);
	if (has_it) {
		lock_give(&lock_now);
	} else {
		trial.starved = true;
		trial.gave_up = true;
	}
}

static void ready(struct burst *burst)
{
	const struct state *state = burst->harness.state;
	const struct kind *kind = state->kinds[state->kind_now];

	lock_make(&lock_now, kind->lock, (int)harness_options.priority);
	sem_init(&trial.middle, 0, 0);
	sem_init(&trial.high, 0, 0);
	trial.starved = trial.gave_up = false;
	atomic_store(&trial.high_has_it, false);
}

static bool drain(struct burst *burst, struct json *j)
{
	struct state *state = burst->harness.state;
	struct kind *kind = state->kinds[state->kind_now], *next;
	int64_t wait_ns = trial.ended_ns - trial.ready_ns, held_ns = trial.released_ns - trial.taken_ns;

	series_feed_timed(&kind->series, trial.ready_ns, wait_ns, j);
	kind->done++;
	kind->starved += trial.starved;
	kind->gave_up += trial.gave_up;
	if (wait_ns > kind->wait_max_ns)
		kind->wait_max_ns = wait_ns;
	if (held_ns > kind->held_max_ns)
		kind->held_max_ns = held_ns;
	lock_end(&lock_now);
	/* Takes the kinds by turns, so that a disturbance does not affect only one kind. */
	do {
		state->kind_now = (state->kind_now + 1) % state->kind_count;
		next = state->kinds[state->kind_now];
		if (next->done < trials && !next->error)
			return true;
	} while (next != kind);
	return false;
}

static void conclude(struct harness *h, struct json *j)
{
	const struct state *state = h->state;

	for (unsigned int i = 0; i < state->kind_count; i++) {
		const struct kind *kind = state->kinds[i];

		stream_result(j, "inversion");
		json_str(j, "lock", lock_names[kind->lock]);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_str(j, "answer",
			 kind->error	 ? "not-available"
			 : kind->starved ? "starved"
			 : kind->done	 ? "not-starved"
					 : "not-tried");
		json_int(j, "trials", kind->done);
		json_int(j, "starved", kind->starved);
		json_int(j, "gave_up", kind->gave_up);
		json_int(j, "wait_max_ns", kind->wait_max_ns);
		json_int(j, "held_max_ns", kind->held_max_ns);
		json_int(j, "section_ns", section_ns);
		json_int(j, "limit_ns", limit_ns);
		stream_result_end(j);
	}
}

static int make_kind(struct state *state, enum lock_kind lock_kind, int cpu)
{
	struct kind *kind = memory_get(sizeof(*kind));

	if (!kind)
		return harness_no_memory();
	kind->lock = lock_kind;
	kind->error = lock_make(&lock_now, lock_kind, (int)harness_options.priority);
	if (!kind->error)
		lock_end(&lock_now);
	else if (lock != LOCK_ALL)
		return error_lacks(STATUS_CANNOT_MEASURE, "method", lock_names[lock_kind],
				   "choose another --lock", "this machine does not support %s (%s)",
				   lock_names[lock_kind], strerror(kind->error));
	kind->series.id = state->kind_count;
	kind->series.metric = "wait";
	kind->series.cpu = cpu;
	kind->series.labels[0] = (struct label){"lock", lock_names[lock_kind]};
	state->series[state->kind_count] = &kind->series;
	state->kinds[state->kind_count++] = kind;
	return 0;
}

static int prepare_probe(struct burst *burst)
{
	static void (*const run[])(struct burst_task *) = {run_low, run_middle, run_high};
	struct state *state = burst->harness.state;
	int cpu, status = placement_choose(burst->harness.cpus, PLACEMENT_SAME_CPU, &cpu, &cpu);

	for (int i = 1; lock_names[i] && !status; i++) {
		if (lock == LOCK_ALL || lock == i)
			status = make_kind(state, (enum lock_kind)i, cpu);
	}
	for (int i = 0; i < TASKS && !status; i++) {
		state->tasks[i] = burst_task_new(cpu, 1, run[i]);
		if (!state->tasks[i])
			return harness_no_memory();
		state->tasks[i]->thread.priority = (int)harness_options.priority - (HIGH - i);
	}
	if (status)
		return status;
	while (state->kind_now < state->kind_count - 1 && state->kinds[state->kind_now]->error)
		state->kind_now++;
	burst->tasks = state->tasks;
	burst->harness.series = state->series;
	burst->harness.series_count = state->kind_count;
	burst->work_ns = limit_ns + 2 * section_ns;
	burst->pause_ns = burst->work_ns / 2;
	harness_options.warm_up_ns = 0;
	harness_options.count = trials;
	return 0;
}

static struct burst burst = {
	.harness =
		{
			.table = table,
			.state_size = sizeof(struct state),
			.conclude = conclude,
		},
	.prepare = prepare_probe,
	.task_count = TASKS,
	.ready = ready,
	.drain = drain,
};

static int verb_inversion(int argc, char **argv)
{
	return burst_run(&burst, argc, argv);
}

PROBE("inversion", verb_inversion,
      "whether a high-priority task starves while it waits for a low-priority task's lock, for each kind of lock")
