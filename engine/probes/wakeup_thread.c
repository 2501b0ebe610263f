// SPDX-License-Identifier: MIT
#include "probes/wakeup_thread.h"

#include <errno.h>
#include <sched.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/commands.h"
#include "rt/clock.h"
#include "rt/policy.h"
#include "rt/wait.h"

#define ROOM_NS (NS_PER_S / 5) /* between two looks whether a full ring has room again */

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
	if (wakeup_wanted.stop_at_ns && latency > wakeup_wanted.stop_at_ns &&
	    t->position >= t->warm_up_count) {
		atomic_store(&wakeup_shared.over_threshold, true);
		atomic_store(&wakeup_shared.stop, true);
	}
	missed = series_missed_after(latency, wakeup_wanted.interval_ns);
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
	wait_until_monotonic(next);
}

/* The measured path: wait, read the clock, store. Ends at activation `end` or at the stop flag. */
static inline __attribute__((always_inline)) void measure(struct task *t, int64_t end, bool by_timerfd)
{
	const time_t interval_s = (time_t)(wakeup_wanted.interval_ns / NS_PER_S);
	const long interval_rest_ns = (long)(wakeup_wanted.interval_ns % NS_PER_S);
	struct timespec next = ns_timespec(t->start_ns + t->position * wakeup_wanted.interval_ns), now;
	int64_t left = end - t->position;

	while (left > 0) {
		int64_t latency;

		wait_until(t, &next, by_timerfd);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (__builtin_expect(atomic_load_explicit(&wakeup_shared.stop, memory_order_relaxed), 0))
			break;
		latency = (int64_t)(now.tv_sec - next.tv_sec) * NS_PER_S + (now.tv_nsec - next.tv_nsec);
		if (__builtin_expect((uint64_t)latency >= t->limit_ns, 0) ||
		    __builtin_expect(!ring_push(&t->ring, latency), 0)) {
			int64_t over;

			t->position = end - left;
			over = look_closer(t, latency);
			left -= over;
			next = ns_timespec(timespec_ns(&next) + over * wakeup_wanted.interval_ns);
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
	if (wakeup_wanted.timer == TIMER_TIMERFD)
		measure(t, end, true);
	else
		measure(t, end, false);
}

void *wakeup_thread(void *arg)
{
	struct task *t = arg;
	struct cpuset own;

	commands_leave_to_main();
	cpuset_clear(&own);
	cpuset_add(&own, (unsigned int)t->cpu);
	t->tid = gettid();
	t->error = cpuset_pin(&own);
	if (!t->error)
		t->error = policy_set((enum policy)wakeup_wanted.policy, (int)wakeup_wanted.priority);
	if (!t->error && wakeup_wanted.timer == TIMER_TIMERFD) {
		t->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		t->error = t->timer_fd < 0 ? errno : 0;
	}
	t->schedstat = usage_open();
	usage_read(t->schedstat, &t->before); /* so that the first that counts is quick */
	pthread_getcpuclockid(pthread_self(), &t->cpu_clock);
	atomic_store(&t->ready, true);
	while (sem_wait(&wakeup_shared.gate))
		;
	if (!t->error && !atomic_load(&wakeup_shared.stop)) {
		run_phase(t, t->warm_up_count);
		usage_read(t->schedstat, &t->before);
		run_phase(t, t->total_count);
		usage_read(t->schedstat, &t->after);
		t->usage_known = true;
		t->moved = sched_getcpu() != t->cpu;
	}
	/* Activations that a full ring kept out to the last are told when there is room again. */
	while (t->pending_lost && !ring_push(&t->ring, SAMPLE_LOST(t->pending_lost)))
		clock_pause_ns(ROOM_NS);
	atomic_store(&t->done, true);
	return NULL;
}
