// SPDX-License-Identifier: MIT
#include "ext/signal/engine/periodic/tasks.h"

#include <errno.h>
#include <stddef.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/commands.h"
#include "base/container_of.h"
#include "base/memory.h"
#include "base/series.h"
#include "harness/harness.h"
#include "harness/peer_process.h"
#include "rt/wait.h"

static struct toggler *toggler_of(struct harness_thread *thread)
{
	return container_of(thread, struct toggler, thread);
}

/* Sleeps until the next release, or until a signal. */
static inline void wait_release(struct toggler *t, int64_t release_ns, bool by_timerfd)
{
	const struct timespec release = ns_timespec(release_ns);
	uint64_t expirations;

	if (!by_timerfd) {
		wait_until_monotonic(&release);
		return;
	}
	/* If a release passed during the sleep, it has expired too: read it and ignore it. */
	while (t->expired <= t->release && read(t->timer_fd, &expirations, sizeof(expirations)) > 0)
		t->expired += (int64_t)expirations;
}

/* The measured path: waits, toggles, reads the clock, stores. */
static inline __attribute__((always_inline)) void toggle_until(struct toggler *t, int64_t end,
							       bool by_timerfd)
{
	while (t->release < end) {
		int64_t release_ns = t->start_ns + t->release * t->half_ns, now_ns, missed;
		size_t slot;

		wait_release(t, release_ns, by_timerfd);
		if (__builtin_expect(atomic_load_explicit(&harness_shared.stop, memory_order_relaxed), 0))
			return;
		if (commands_cut_short(release_ns, clock_now_ns(CLOCK_MONOTONIC)))
			continue;
		t->error = t->end->kind->send(t->end, ++t->edges);
		now_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (__builtin_expect(t->error, 0))
			return;
		if (slot_ring_next(&t->ring, &slot)) {
			t->slots[slot] = (struct toggle){t->release, t->edges, now_ns};
			slot_ring_push(&t->ring);
		}
		missed = series_missed_after(now_ns - release_ns, t->half_ns);
		t->release += 1 + missed;
	}
}

static void run_phase(struct toggler *t, int64_t end)
{
	if (t->error)
		return;
	if (t->by_timerfd)
		toggle_until(t, end, true);
	else
		toggle_until(t, end, false);
}

static void measure(struct harness_thread *thread)
{
	struct toggler *t = toggler_of(thread);
	const struct itimerspec each = {.it_value = ns_timespec(t->start_ns),
					.it_interval = ns_timespec(t->half_ns)};

	if (t->by_timerfd)
		timerfd_settime(t->timer_fd, TFD_TIMER_ABSTIME, &each, NULL);
	run_phase(t, t->warm_up_count);
	usage_read(thread->schedstat, &thread->before);
	run_phase(t, t->total_count);
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = true;
	if (t->tells_over)
		t->end->kind->send(t->end, EDGE_OVER);
}

static int prepare(struct harness_thread *thread)
{
	struct toggler *t = toggler_of(thread);

	if (!t->by_timerfd)
		return 0;
	t->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	return t->timer_fd < 0 ? errno : 0;
}

bool toggler_make(struct toggler *t)
{
	t->slots = memory_get(TOGGLER_ROOM * sizeof(*t->slots));
	if (!t->slots)
		return false;
	slot_ring_init(&t->ring, TOGGLER_ROOM);
	t->thread.prepare = prepare;
	t->thread.measure = measure;
	return true;
}

#define ROOM 16384

struct observer *observer_new(struct path_end *end)
{
	struct observer *o = peer_process_memory(sizeof(*o));

	if (!o)
		return NULL;
	o->slots = peer_process_memory(ROOM * sizeof(*o->slots));
	if (!o->slots)
		return NULL;
	slot_ring_init(&o->ring, ROOM);
	o->end = end;
	return o;
}

int observer_join(void *arg)
{
	struct observer *o = arg;

	return path_join(o->end);
}

/* The measured path: waits for an edge, reads the clock, stores. */
void observer_watch(void *arg)
{
	struct observer *o = arg;
	struct path_end *end = o->end;
	struct edge edge;

	while (!atomic_load_explicit(&harness_shared.stop, memory_order_relaxed)) {
		int error = end->kind->receive(end, &edge);
		int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
		size_t slot;

		if (error == EINTR)
			continue;
		if (error) {
			atomic_store(&o->error, error);
			return;
		}
		if (edge.number == EDGE_OVER) {
			atomic_store(&o->over, true);
			continue;
		}
		o->edges = edge.number == EDGE_UNNUMBERED ? o->edges + edge.count : edge.number;
		if (!slot_ring_next(&o->ring, &slot)) {
			atomic_fetch_add(&o->not_kept, 1);
			continue;
		}
		o->slots[slot] = (struct sight){edge.time_ns ? edge.time_ns : now_ns, o->edges, edge.count};
		slot_ring_push(&o->ring);
	}
}
