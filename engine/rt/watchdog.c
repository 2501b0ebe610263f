// SPDX-License-Identifier: MIT
#include "rt/watchdog.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/usage.h"
#include "rt/deadline.h"
#include "rt/policy.h"

#define TICK_NS (NS_PER_S / 2)
#define DRAIN_TICKS 10
#define DRAIN_LIVES_NS (NS_PER_S / 1000)
#define PATIENCE_TICKS 4
#define OVERTIME_NS (30 * NS_PER_S)
#define WATCHED_MAX 1024
#define HELD_TICKS 7	  /* a thread that wants to run but cannot for this long is held from its CPU */
#define HELD_STOP_TICKS 2 /* the same if the probe must end */
#define HELD_LAST_TICKS 6 /* moved but still not done, so other CPUs are held too */
#define OVER_NS NS_PER_S

static const struct deadline little = {1000000, 100000000, 100000000};

static void rise(const struct cpuset *allowed)
{
	struct sched_param highest = {.sched_priority = sched_get_priority_max(SCHED_FIFO)};

	cpuset_pin(0, allowed);
	if (deadline_set(0, &little))
		policy_sched_setscheduler(0, SCHED_FIFO, &highest);
}

static int64_t cpu_time_ns(const struct watched *thread)
{
	return atomic_load(thread->done) ? 0 : usage_cpu_ns(thread->tid, thread->cpu_clock);
}

/* Returns whether the first thread is waiting for a CPU. It may also be waiting for the reader of its
   output. */
static bool first_thread_runnable(void)
{
	char text[512], *name_end;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return true;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return true;
	text[len] = '\0';
	name_end = strrchr(text, ')');
	return !name_end || !strncmp(name_end, ") R", 3);
}

struct drain_watch {
	uint64_t progress;
	int64_t used_ns;
	unsigned int idle_ticks;
};

/* Called each tick. Returns true if the drain has wanted to run and could not for DRAIN_TICKS. */
static bool drain_starves(struct drain_watch *drain, const struct watchdog *dog)
{
	uint64_t progress = atomic_load(dog->progress);
	int64_t used_ns;

	if (progress != drain->progress) {
		drain->progress = progress;
		drain->idle_ticks = 0;
		return false;
	}
	used_ns = usage_cpu_ns(0, dog->drain_clock);
	if (++drain->idle_ticks == 1 || used_ns - drain->used_ns > DRAIN_LIVES_NS) {
		drain->used_ns = used_ns;
		drain->idle_ticks = 1;
	}
	if (drain->idle_ticks < DRAIN_TICKS)
		return false;
	if (first_thread_runnable())
		return true;
	drain->idle_ticks = 0;
	return false;
}

static void bite(struct watchdog *dog)
{
	struct sched_param none = {0};

	atomic_store(&dog->bitten, true);
	atomic_store(dog->stop, true);
	for (int tick = 0; tick < 2 * PATIENCE_TICKS; tick++) {
		if (atomic_load(&dog->ended))
			return;
		if (tick == PATIENCE_TICKS) {
			for (unsigned int i = 0; i < dog->count; i++)
				policy_sched_setscheduler(dog->threads[i].tid, SCHED_OTHER, &none);
		}
		clock_pause_ns(TICK_NS);
	}
	if (!atomic_load(&dog->ended))
		_exit(3);
}

struct wait_watch {
	int64_t used_ns;
	unsigned int ticks; /* ticks in which the thread wanted to run but could not */
	bool found;
};

/* Called each tick. Returns true if the thread has been waiting for its CPU since the last tick. */
static bool waits(const struct watched *thread, struct wait_watch *wait, int64_t used_ns)
{
	struct thread_stat stat;

	if (atomic_load(thread->done) || used_ns != wait->used_ns || !thread_stat_own(thread->tid, &stat) ||
	    stat.state != 'R') {
		wait->used_ns = used_ns;
		wait->ticks = 0;
		return false;
	}
	wait->ticks++;
	return true;
}

/* Lets a thread run on other CPUs, so that it notices the stop flag and ends. */
static void give_up_cpu(const struct watchdog *dog, const struct watched *thread, unsigned int ticks,
			int64_t now_ns)
{
	struct cpuset others = dog->allowed;

	if (!atomic_load(thread->given_up_ns))
		atomic_store(thread->given_up_ns, atomic_load(&dog->over) ? INT64_MAX : now_ns);
	if (thread->cpu >= 0)
		others.word[thread->cpu / 64] &= ~(UINT64_C(1) << (thread->cpu % 64));
	if (cpuset_count(&others))
		cpuset_pin(thread->tid, &others);
	if (!cpuset_count(&others) || ticks >= HELD_LAST_TICKS) {
		cpuset_pin(thread->tid, &dog->allowed);
		deadline_set(thread->tid, &little);
	}
}

/* Called each tick for each thread. Reports a thread that is held from its CPU, and frees it at the end. */
static void look_at_wait(struct watchdog *dog, const struct watched *thread, struct wait_watch *wait,
			 int64_t used_ns, bool over_time)
{
	bool stopping = atomic_load(dog->stop);

	if (!waits(thread, wait, used_ns) || wait->ticks < (stopping ? HELD_STOP_TICKS : HELD_TICKS))
		return;
	if (!wait->found && !atomic_load(&dog->held_found)) {
		wait->found = true;
		dog->held.cpu = thread->cpu;
		dog->held.waited_ns = wait->ticks * TICK_NS;
		dog->held.holder_known = cpu_holder_find(thread->cpu, &dog->held.holder);
		atomic_store(&dog->held_found, true);
	}
	if (wait->found && over_time && !stopping) {
		atomic_store(&dog->over, true);
		atomic_store(dog->stop, true);
		stopping = true;
	}
	if (stopping)
		give_up_cpu(dog, thread, wait->ticks, clock_now_ns(CLOCK_MONOTONIC));
}

bool hog_window_full(struct hog_window *window, int64_t used_ns, int64_t elapsed_ns, int percent)
{
	unsigned int slot = window->ticks++ % WATCHDOG_HOG_TICKS;
	int64_t used_sum_ns = 0, elapsed_sum_ns = 0;

	window->used_ns[slot] = used_ns;
	window->elapsed_ns[slot] = elapsed_ns;
	for (unsigned int i = 0; i < WATCHDOG_HOG_TICKS; i++) {
		used_sum_ns += window->used_ns[i];
		elapsed_sum_ns += window->elapsed_ns[i];
	}
	return window->ticks >= WATCHDOG_HOG_TICKS && used_sum_ns > elapsed_sum_ns / 100 * percent;
}

static void *watch(void *arg)
{
	struct watchdog *dog = arg;
	static int64_t used_ns[WATCHED_MAX];
	static struct hog_window hogs[WATCHED_MAX];
	static struct wait_watch waiting[WATCHED_MAX];
	int64_t began_ns = clock_now_ns(CLOCK_MONOTONIC), then_ns = began_ns;
	int64_t limit_ns = dog->limit_ns;
	int hog_percent = dog->hog_percent ? dog->hog_percent : WATCHDOG_HOG_PERCENT;
	struct drain_watch drain = {.progress = atomic_load(dog->progress)};
	sigset_t every;

	/* A signal would end a pause early, and short ticks would make the counts too fast. */
	sigfillset(&every);
	pthread_sigmask(SIG_BLOCK, &every, NULL);
	rise(&dog->allowed);
	while (!atomic_load(&dog->ended)) {
		int64_t now_ns;

		clock_pause_ns(TICK_NS);
		now_ns = clock_now_ns(CLOCK_MONOTONIC);
		for (unsigned int i = 0; i < dog->count && i < WATCHED_MAX; i++) {
			int64_t used = cpu_time_ns(&dog->threads[i]);
			bool hogs_cpu =
				hog_window_full(&hogs[i], used - used_ns[i], now_ns - then_ns, hog_percent);

			used_ns[i] = used;
			look_at_wait(dog, &dog->threads[i], &waiting[i], used,
				     dog->limit_ns < now_ns - began_ns - OVER_NS);
			if (hogs_cpu) {
				snprintf(dog->why, sizeof(dog->why),
					 "a measuring thread used more than %d %% of its CPU for 2 s, "
					 "because the interval is too short for this machine; give a longer "
					 "one",
					 hog_percent);
				bite(dog);
				return NULL;
			}
		}
		if (drain_starves(&drain, dog)) {
			snprintf(dog->why, sizeof(dog->why),
				 "ordinary threads of the engine did not run for 5 s, because real-time "
				 "tasks took every CPU");
			bite(dog);
			return NULL;
		}
		if (atomic_load(dog->stop) && now_ns - began_ns < limit_ns)
			limit_ns = now_ns - began_ns;
		if (now_ns - began_ns - OVERTIME_NS > limit_ns) {
			snprintf(dog->why, sizeof(dog->why),
				 "the probe was still running 30 s after it should have ended");
			bite(dog);
			return NULL;
		}
		then_ns = now_ns;
	}
	return NULL;
}

int watchdog_start(struct watchdog *dog)
{
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN + 32768);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attr, watch, dog);
	pthread_attr_destroy(&attr);
	return error;
}
