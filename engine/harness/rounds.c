// SPDX-License-Identifier: MIT
#include "harness/rounds.h"

#include <errno.h>
#include <time.h>

#include "base/error.h"
#include "rt/clock.h"
#include "rt/memory.h"
#include "rt/usage.h"

#define STUCK_NS (10 * NS_PER_S)

int64_t rounds_limit_ns;

static struct rounds *now_running;
static _Atomic bool over, measuring;
static sem_t arrived, meeting;
static _Atomic unsigned int met;

/* What a thread of a probe in rounds does: a round each time that its gate opens. */
static void rounds_thread(struct harness_thread *thread)
{
	struct rounds_task *t = (struct rounds_task *)((char *)thread - offsetof(struct rounds_task, thread));

	for (;;) {
		while (sem_wait(&t->gate))
			;
		if (atomic_load(&over))
			return;
		if (!thread->usage_known && atomic_load(&measuring)) {
			usage_read(thread->schedstat, &thread->before);
			thread->usage_known = true;
		}
		t->count = 0;
		t->work(t);
		usage_read(thread->schedstat, &thread->after);
		sem_post(&arrived);
	}
}

/*
 * Who arrives first may have a higher priority than those that it waits for, or than who opens their gates:
 * it sleeps.
 */
void rounds_meet(void)
{
	unsigned int all = now_running->task_count;

	if (atomic_fetch_add(&met, 1) + 1 < all) {
		while (sem_wait(&meeting))
			;
		return;
	}
	for (unsigned int i = 1; i < all; i++)
		sem_post(&meeting);
}

struct rounds_task *rounds_task_new(int cpu, size_t room, void (*work)(struct rounds_task *t))
{
	struct rounds_task *t = memory_get(sizeof(*t));

	if (!t)
		return NULL;
	t->times = memory_get(room * sizeof(*t->times));
	if (!t->times)
		return NULL;
	t->room = room;
	t->work = work;
	t->thread.cpu = cpu;
	t->thread.policy = (enum policy)harness_options.policy;
	t->thread.priority = (int)harness_options.priority;
	return t;
}

/* false: a task did not end its round. The clock of sem_timedwait may be set: it is only how often we look.
 */
static bool wait_arrived(void)
{
	int64_t give_up_ns = rounds_limit_ns + STUCK_NS;

	for (unsigned int i = 0; i < now_running->task_count; i++) {
		struct timespec look = ns_timespec(clock_now_ns(CLOCK_REALTIME) + NS_PER_S);

		while (sem_timedwait(&arrived, &look)) {
			if (clock_now_ns(CLOCK_MONOTONIC) > give_up_ns)
				return false;
			look = ns_timespec(clock_now_ns(CLOCK_REALTIME) + NS_PER_S);
		}
	}
	return true;
}

static bool one_round(struct rounds *r)
{
	atomic_store(&met, 0);
	rounds_limit_ns = clock_now_ns(CLOCK_MONOTONIC) + r->work_ns;
	if (r->ready)
		r->ready();
	for (unsigned int i = 0; i < r->task_count; i++)
		sem_post(&r->tasks[i]->gate);
	return wait_arrived();
}

static void begin(struct harness *h)
{
	int64_t start_ns = clock_now_ns(CLOCK_MONOTONIC);
	int64_t measured_ns = harness_options.duration_ns ? harness_options.duration_ns : INT64_MAX;

	for (unsigned int i = 0; i < h->series_count; i++)
		series_timed(h->series[i], start_ns, harness_options.warm_up_ns, measured_ns);
	harness_go(h);
	harness_watch(h, measured_ns == INT64_MAX ? INT64_MAX : harness_options.warm_up_ns + measured_ns);
}

bool rounds_feed(struct series *s, int64_t time_ns, int64_t value_ns, struct json *j)
{
	if (harness_options.count &&
	    s->total.count + (s->measuring ? s->window.count : 0) >= harness_options.count)
		return false;
	return series_feed_timed(s, time_ns, value_ns, j);
}

/* What the round leaves to the rest of the machine; a signal makes it no shorter. */
static void rest(struct rounds *r)
{
	int64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + r->rest_ns, left_ns = r->rest_ns;

	do {
		harness_pause(left_ns);
		left_ns = end_ns - clock_now_ns(CLOCK_MONOTONIC);
	} while (left_ns > 0 && !harness_stopping(&r->harness));
}

/* Rounds until the time is over, enough was counted or we are stopped; false: a task is stuck. */
static bool all_rounds(struct rounds *r)
{
	int64_t start_ns = clock_now_ns(CLOCK_MONOTONIC), now_ns;
	int64_t end_ns = harness_options.duration_ns
				 ? start_ns + harness_options.warm_up_ns + harness_options.duration_ns
				 : INT64_MAX;

	do {
		if (clock_now_ns(CLOCK_MONOTONIC) - start_ns >= harness_options.warm_up_ns)
			atomic_store(&measuring, true);
		if (!one_round(r))
			return false;
		now_ns = clock_now_ns(CLOCK_MONOTONIC);
		for (unsigned int i = 0; i < r->harness.series_count; i++)
			r->harness.series[i]->reached_ns = now_ns;
		if (!r->take(&r->harness.j))
			return true;
		rest(r);
	} while (!harness_stopping(&r->harness) && clock_now_ns(CLOCK_MONOTONIC) < end_ns);
	return true;
}

static int make(struct harness *h)
{
	static struct harness_thread *threads[PROBE_CPUS_MOST];
	struct rounds *r = now_running;
	int status = r->make(r);

	if (status)
		return status;
	sem_init(&arrived, 0, 0);
	sem_init(&meeting, 0, 0);
	for (unsigned int i = 0; i < r->task_count; i++) {
		sem_init(&r->tasks[i]->gate, 0, 0);
		r->tasks[i]->number = i;
		r->tasks[i]->thread.measure = rounds_thread;
		threads[i] = &r->tasks[i]->thread;
	}
	h->threads = threads;
	h->thread_count = r->task_count;
	return 0;
}

static int run(struct harness *h)
{
	struct rounds *r = now_running;

	begin(h);
	if (!all_rounds(r))
		return error_line(
			STATUS_CANNOT_MEASURE, "cpu-busy",
			"the measuring threads did not end their round for 10 s: something of a "
			"higher priority takes their CPU; end that, or choose other CPUs with --cpu");
	atomic_store(&over, true);
	for (unsigned int i = 0; i < r->task_count; i++)
		sem_post(&r->tasks[i]->gate);
	return harness_finish(h, harness_options.count ? "count" : "duration");
}

int rounds_run(struct rounds *r, int argc, char **argv)
{
	now_running = r;
	r->harness.make = make;
	r->harness.run = run;
	return harness_run(&r->harness, argc, argv);
}
