// SPDX-License-Identifier: MIT
#include "harness/burst.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/usage.h"
#include "harness/refusal.h"
#include "rt/cpu_holder.h"

#define STUCK_NS (5 * NS_PER_S)

static struct burst *burst_of(struct harness *h)
{
	return container_of(h, struct burst, harness);
}

/* The life of a thread, in bursts: one burst each time its gate opens. */
static void burst_thread(struct harness_thread *thread)
{
	struct burst_task *t = container_of(thread, struct burst_task, thread);
	struct burst *burst = t->burst;

	for (;;) {
		while (sem_wait(&t->gate))
			;
		if (atomic_load(&burst->finished))
			return;
		if (!thread->usage_known && atomic_load(&burst->measuring)) {
			usage_read(thread->schedstat, &thread->before);
			thread->usage_known = true;
		}
		t->count = 0;
		t->work(t);
		usage_read(thread->schedstat, &thread->after);
		sem_post(&burst->over);
	}
}

/*
 * The first task to arrive may have a higher priority than the others, or than the thread that opens their
 * gates. So it sleeps.
 */
void burst_meet(struct burst *burst)
{
	unsigned int all = burst->task_count;

	if (atomic_fetch_add(&burst->arrived_count, 1) + 1 < all) {
		while (sem_wait(&burst->all_arrived))
			;
		return;
	}
	for (unsigned int i = 1; i < all; i++)
		sem_post(&burst->all_arrived);
}

struct burst_task *burst_task_new(int cpu, size_t room, void (*work)(struct burst_task *t))
{
	struct burst_task *t = memory_get(sizeof(*t));

	if (!t)
		return NULL;
	t->times = memory_get(room * sizeof(*t->times));
	if (!t->times)
		return NULL;
	t->room = room;
	t->work = work;
	harness_thread_on(&t->thread, cpu);
	return t;
}

/* Returns false if a task did not end its burst. The clock of sem_timedwait may be changed, but it only
 * decides how often we look. */
static bool wait_burst_over(struct burst *burst)
{
	int64_t give_up_ns = burst->limit_ns + STUCK_NS;

	for (unsigned int i = 0; i < burst->task_count; i++) {
		struct timespec look = ns_timespec(clock_now_ns(CLOCK_REALTIME) + NS_PER_S);

		while (sem_timedwait(&burst->over, &look)) {
			if (clock_now_ns(CLOCK_MONOTONIC) > give_up_ns)
				return false;
			look = ns_timespec(clock_now_ns(CLOCK_REALTIME) + NS_PER_S);
		}
	}
	return true;
}

static bool one_burst(struct burst *burst)
{
	atomic_store(&burst->arrived_count, 0);
	burst->limit_ns = clock_now_ns(CLOCK_MONOTONIC) + burst->work_ns;
	if (burst->ready)
		burst->ready(burst);
	for (unsigned int i = 0; i < burst->task_count; i++)
		sem_post(&burst->tasks[i]->gate);
	return wait_burst_over(burst);
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

bool burst_feed(struct series *s, int64_t time_ns, int64_t value_ns, struct json *j)
{
	if (harness_options.count &&
	    s->total.count + (s->measuring ? s->window.count : 0) >= harness_options.count)
		return false;
	return series_feed_timed(s, time_ns, value_ns, j);
}

/* The pause that a burst leaves to the rest of the machine. A signal does not shorten it. */
static void pause_between_bursts(struct burst *burst)
{
	int64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + burst->pause_ns, left_ns = burst->pause_ns;

	do {
		harness_pause(left_ns);
		left_ns = end_ns - clock_now_ns(CLOCK_MONOTONIC);
	} while (left_ns > 0 && !harness_stopping(&burst->harness));
}

/* Runs bursts until the time is over, enough was counted or the probe is stopped. Returns false if a task
 * is stuck. */
static bool all_bursts(struct burst *burst)
{
	int64_t start_ns = clock_now_ns(CLOCK_MONOTONIC), now_ns;
	int64_t end_ns = harness_options.duration_ns
				 ? start_ns + harness_options.warm_up_ns + harness_options.duration_ns
				 : INT64_MAX;

	do {
		if (clock_now_ns(CLOCK_MONOTONIC) - start_ns >= harness_options.warm_up_ns)
			atomic_store(&burst->measuring, true);
		if (!one_burst(burst))
			return false;
		now_ns = clock_now_ns(CLOCK_MONOTONIC);
		for (unsigned int i = 0; i < burst->harness.series_count; i++)
			burst->harness.series[i]->reached_ns = now_ns;
		if (!burst->drain(burst, &burst->harness.j))
			return true;
		pause_between_bursts(burst);
	} while (!harness_stopping(&burst->harness) && clock_now_ns(CLOCK_MONOTONIC) < end_ns);
	return true;
}

static int prepare_burst(struct harness *h)
{
	struct burst *burst = burst_of(h);
	int status = burst->prepare(burst);

	if (status)
		return status;
	h->threads = memory_get(burst->task_count * sizeof(struct harness_thread *));
	if (!h->threads)
		return harness_no_memory();
	sem_init(&burst->over, 0, 0);
	sem_init(&burst->all_arrived, 0, 0);
	for (unsigned int i = 0; i < burst->task_count; i++) {
		sem_init(&burst->tasks[i]->gate, 0, 0);
		burst->tasks[i]->number = i;
		burst->tasks[i]->burst = burst;
		burst->tasks[i]->thread.measure = burst_thread;
		h->threads[i] = &burst->tasks[i]->thread;
	}
	h->thread_count = burst->task_count;
	return 0;
}

/* Returns the CPU of a task that wants to run and does not; if there is none any more, the first task's. */
static int waiting_cpu(const struct burst *burst)
{
	struct thread_stat stat;

	for (unsigned int i = 0; i < burst->task_count; i++) {
		if (thread_stat_own(burst->tasks[i]->thread.tid, &stat) && stat.state == 'R')
			return burst->tasks[i]->thread.cpu;
	}
	return burst->tasks[0]->thread.cpu;
}

static int run(struct harness *h)
{
	struct burst *burst = burst_of(h);

	begin(h);
	if (!all_bursts(burst))
		return refuse_held_cpu(waiting_cpu(burst), "its measuring thread", "other CPUs with --cpu");
	atomic_store(&burst->finished, true);
	for (unsigned int i = 0; i < burst->task_count; i++)
		sem_post(&burst->tasks[i]->gate);
	return harness_finish(h, harness_options.count ? "count" : "duration");
}

int burst_run(struct burst *burst, int argc, char **argv)
{
	burst->harness.prepare = prepare_burst;
	burst->harness.run = run;
	return harness_run(&burst->harness, argc, argv);
}
