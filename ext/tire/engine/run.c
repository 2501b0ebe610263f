// SPDX-License-Identifier: MIT
#include "ext/tire/engine/run.h"

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/commands.h"
#include "base/container_of.h"
#include "base/memory.h"
#include "base/ring.h"
#include "base/series.h"
#include "ext/tire/engine/frame.h"
#include "harness/refusal.h"
#include "rt/barrier.h"
#include "rt/denormals.h"
#include "rt/wait.h"

#define RING ((size_t)65536)
#define WORK_NS (NS_PER_S / 1000 * 80) /* then a rest of a quarter of this time */
#define FREE_NS (NS_PER_S / 100)       /* approximate time for which free-running threads do not meet */
#define LOOK_NS NS_PER_S	       /* real-time: how often to check how much time is left over */
#define LOOKS 2
#define BUSY_PERCENT 97
#define RESET_NS (NS_PER_S / 100) /* and for each node: longest time to restore the model */
#define RESET_NODE_NS 400
#define BARRIER_EACH                                                                                         \
	64 /* of steps that are short against a reading of the clock: how many a timed barrier               \
	    */

enum phase { WARM_UP, MEASURE };

struct worker {
	_Alignas(CACHE_LINE) struct harness_thread thread;
	unsigned int number;
	int64_t begin_ns; /* real-time: when it began the step */
	int64_t barrier_ns, barriers, passes;
};

static struct tire_plan plan;
static struct worker *workers;
static struct slot_ring ring;
static struct tire_sample *samples;

/* The last thread to arrive at a meeting writes this. All threads read it until they arrive at the next
   meeting. */
static struct {
	_Alignas(CACHE_LINE) struct barrier barrier;
	enum phase phase;
	bool over;	    /* the phase */
	bool ended;	    /* everything */
	int64_t stride;	    /* steps until the next meeting */
	int64_t release_ns; /* real-time: of the next step */

	/* only for the last thread */
	int64_t start_ns, measured_start_ns, end_ns; /* end: latest end of the phase */
	int64_t total, done;			     /* steps or activations of the phase */
	int64_t stamp_ns, since, rested_ns;
	int64_t look_ns, busy_ns;
	int looks;
	struct tire_books books;
} now;

static void store(struct tire_sample sample)
{
	size_t slot;

	if (!slot_ring_next(&ring, &slot)) {
		now.books.lost++;
		return;
	}
	samples[slot] = sample;
	slot_ring_push(&ring);
}

static void note_time(int64_t steps, int64_t took_ns)
{
	int64_t one_ns = (took_ns + steps / 2) / steps;

	if (now.phase != MEASURE)
		return;
	now.books.steps += steps;
	now.books.wall_ns += took_ns;
	if (!now.books.shortest_ns || one_ns < now.books.shortest_ns)
		now.books.shortest_ns = one_ns;
	if (one_ns > now.books.longest_ns)
		now.books.longest_ns = one_ns;
}

static bool stopped(void)
{
	return atomic_load_explicit(&harness_shared.stop, memory_order_relaxed);
}

/* A real-time thread that computes without a break would take over the machine. */
static void rest(int64_t now_ns)
{
	int64_t rest_ns = (now_ns - now.rested_ns) / 4;

	if (rest_ns >= now.end_ns - now_ns) {
		now.over = true;
		return;
	}
	clock_pause_ns(rest_ns);
	now.rested_ns = clock_now_ns(CLOCK_MONOTONIC);
	if (now.phase == MEASURE)
		now.books.rest_ns += now.rested_ns - now_ns;
	now.stamp_ns = now.rested_ns;
	now.over = now.rested_ns >= now.end_ns;
}

/* Real-fast: stores that `stride` steps are done. */
static void fast_step_over(void *arg)
{
	int64_t now_ns, took_ns;

	(void)arg;
	now.done += now.stride;
	now.since += now.stride;
	if (now.since < plan.block && now.done < now.total)
		return;
	now_ns = clock_now_ns(CLOCK_MONOTONIC);
	took_ns = now_ns - now.stamp_ns;
	store((struct tire_sample){.time_ns = now.stamp_ns,
				   .step_ns = (took_ns + now.since / 2) / now.since});
	note_time(now.since, took_ns);
	now.ended = stopped();
	now.over = now.ended || now.done >= now.total || now_ns >= now.end_ns;
	if (plan.free_running && took_ns > 0) {
		int64_t fitting = now.stride * FREE_NS / took_ns;

		now.stride = fitting < 1 ? 1 : fitting > 2 * now.stride ? 2 * now.stride : fitting;
	}
	if (now.stride > now.total - now.done)
		now.stride = now.total - now.done;
	now.since = 0;
	now.stamp_ns = now_ns;
	now.books.end_ns = now_ns;
	if (now.phase == MEASURE && !now.over && tire_frame_offer(now.books.steps, now_ns, now_ns, INT64_MAX))
		now.stamp_ns = clock_now_ns(CLOCK_MONOTONIC);
	if (plan.rests && !now.over && now_ns - now.rested_ns >= WORK_NS)
		rest(now_ns);
}

/* Returns whether the threads left no time to the machine for several looks in a row. */
static bool overloads(int64_t now_ns, int64_t busy_ns)
{
	now.busy_ns += busy_ns;
	if (now_ns - now.look_ns < LOOK_NS)
		return false;
	now.looks = now.busy_ns > (now_ns - now.look_ns) / 100 * BUSY_PERCENT ? now.looks + 1 : 0;
	now.look_ns = now_ns;
	now.busy_ns = 0;
	return now.looks >= LOOKS;
}

/* The times at which the first thread began and at which every CPU had begun. Threads that share a CPU
 * begin one after the other. */
static int64_t first_begin(int64_t *everywhere_ns)
{
	unsigned int cpus = plan.cpus < plan.threads ? plan.cpus : plan.threads;
	int64_t first_ns = INT64_MAX;

	*everywhere_ns = 0;
	for (unsigned int cpu = 0; cpu < cpus; cpu++) {
		int64_t here_ns = INT64_MAX;

		for (unsigned int i = cpu; i < plan.threads; i += cpus) {
			if (workers[i].begin_ns < here_ns)
				here_ns = workers[i].begin_ns;
		}
		if (here_ns > *everywhere_ns)
			*everywhere_ns = here_ns;
		if (here_ns < first_ns)
			first_ns = here_ns;
	}
	return first_ns;
}

/* Real-time: stores that the step released at release_ns is done. */
static void timed_step_over(void *arg)
{
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC), begin_ns, everywhere_ns, released_ns, response_ns;
	int64_t missed;

	(void)arg;
	now.ended = now.over = stopped();
	if (now.over)
		return;
	begin_ns = first_begin(&everywhere_ns);
	released_ns = now.release_ns;
	response_ns = now_ns - released_ns;
	missed = series_missed_after(response_ns, plan.period_ns);
	if (missed > now.total - now.done - 1)
		missed = now.total - now.done - 1;
	store((struct tire_sample){.time_ns = released_ns,
				   .latency_ns = everywhere_ns - released_ns,
				   .response_ns = response_ns,
				   .step_ns = now_ns - begin_ns,
				   .missed = missed});
	note_time(1, now_ns - begin_ns);
	if (now.phase == MEASURE) {
		now.books.activations += 1 + missed;
		now.books.late += response_ns > plan.period_ns;
		now.books.missed += missed;
	}
	now.done += 1 + missed;
	now.release_ns += (1 + missed) * plan.period_ns;
	if (plan.rests && overloads(now_ns, now_ns - begin_ns))
		now.books.overload = now.ended = true;
	now.over = now.ended || now.done >= now.total;
	if (now.phase == MEASURE && !now.over)
		tire_frame_offer(now.books.steps, released_ns, now_ns, now.release_ns);
}

static void begin_phase(enum phase phase, int64_t total, int64_t end_ns, int64_t release_ns)
{
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	now.phase = phase;
	now.over = !plan.period_ns && end_ns <= now_ns; /* so late that nothing of the period is left */
	now.ended = now.ended || stopped();
	now.total = total;
	now.end_ns = end_ns;
	now.release_ns = release_ns;
	now.done = now.since = now.busy_ns = 0;
	now.looks = 0;
	now.stamp_ns = now.rested_ns = now.look_ns = now_ns;
	now.stride = plan.threads == 1 && !plan.period_ns ? plan.block : 1;
	if (now.stride > total)
		now.stride = total;
}

/*
 * Ends exactly at the announced time, because nothing may be measured before it. If the measured phase
 * begins later, its own time says so.
 */
static void begin_warm_up(void *arg)
{
	(void)arg;
	begin_phase(WARM_UP, plan.period_ns ? plan.warm_up_ns / plan.period_ns : INT64_MAX,
		    now.measured_start_ns, now.start_ns);
}

/* The phase has its full length, no matter how long restoring the model took. */
static void begin_measured(void *arg)
{
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	(void)arg;
	begin_phase(MEASURE, plan.steps,
		    plan.measured_ns == INT64_MAX ? INT64_MAX : now_ns + plan.measured_ns,
		    now.measured_start_ns);
}

/* Real-time: waits for the release. Returns false if there is no further release. */
static bool wait_for_release(struct worker *w)
{
	const struct timespec release = ns_timespec(now.release_ns);

	do {
		wait_until_monotonic(&release);
		w->begin_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (stopped())
			return false;
	} while (commands_cut_short(now.release_ns, w->begin_ns));
	return true;
}

/* All threads meet. The first thread measures its wait; if steps are short, only now and then. */
static void meet(struct worker *w, void (*once)(void *arg))
{
	int64_t before_ns;

	if (w->number || plan.threads == 1 || plan.free_running ||
	    (plan.block > 1 && ++w->passes % BARRIER_EACH)) {
		barrier_pass(&now.barrier, once, NULL);
		return;
	}
	before_ns = clock_now_ns(CLOCK_MONOTONIC);
	barrier_pass(&now.barrier, once, NULL);
	if (now.phase == MEASURE) {
		w->barrier_ns += clock_now_ns(CLOCK_MONOTONIC) - before_ns;
		w->barriers++;
	}
}

static void run_phase(struct worker *w)
{
	while (!now.ended && !now.over) {
		if (!plan.period_ns) {
			for (int64_t i = now.stride; i; i--)
				plan.solver->step(plan.tire, w->number);
			meet(w, fast_step_over);
		} else {
			if (wait_for_release(w))
				plan.solver->step(plan.tire, w->number);
			meet(w, timed_step_over);
		}
	}
}

static void work(struct harness_thread *thread)
{
	struct worker *w = container_of(thread, struct worker, thread);

	denormals_to_zero();
	plan.solver->reset(plan.tire, w->number);
	if (plan.warm_up_ns) {
		barrier_pass(&now.barrier, begin_warm_up, NULL);
		run_phase(w);
		plan.solver->reset(plan.tire, w->number);
	}
	usage_read(thread->schedstat, &thread->before);
	barrier_pass(&now.barrier, begin_measured, NULL);
	run_phase(w);
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = true;
}

size_t tire_run_bytes(void)
{
	return RING * sizeof(struct tire_sample);
}

int tire_run_make(struct tire_plan *asked)
{
	asked->tire = asked->solver->make(asked->model, asked->threads);
	plan = *asked;
	samples = memory_get(RING * sizeof(*samples));
	workers = memory_get(plan.threads * sizeof(*workers));
	if (!samples || !workers || !plan.tire || !tire_frame_make(&plan))
		return harness_no_memory();
	slot_ring_init(&ring, RING);
	barrier_init(&now.barrier, plan.threads, plan.cpus);
	for (unsigned int i = 0; i < plan.threads; i++) {
		workers[i].number = i;
		workers[i].thread.measure = work;
	}
	return 0;
}

struct harness_thread *tire_run_thread(unsigned int n)
{
	return &workers[n].thread;
}

int64_t tire_run_begin(int64_t start_ns)
{
	now.start_ns = start_ns;
	now.measured_start_ns = start_ns + plan.warm_up_ns;
	/* Restoring the model takes time, but releases stay on the grid. */
	if (plan.period_ns && plan.warm_up_ns)
		now.measured_start_ns +=
			((RESET_NS + plan.model->nodes * RESET_NODE_NS) / plan.period_ns + 1) *
			plan.period_ns;
	return now.measured_start_ns;
}

bool tire_run_next(struct tire_sample *sample)
{
	size_t slot;

	if (!slot_ring_pop(&ring, &slot))
		return false;
	*sample = samples[slot];
	return true;
}

const struct tire_books *tire_run_books(void)
{
	return &now.books;
}

double tire_run_barrier_ns(void)
{
	const struct worker *w = &workers[0];

	return w->barriers ? (double)w->barrier_ns / (double)w->barriers : -1;
}
