// SPDX-License-Identifier: MIT
#include "ext/signal/engine/response/master.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/memory.h"
#include "harness/harness.h"
#include "rt/runtime.h"

#define ROOM 16384
#define ALONE_STIMULI 10 /* so many lost answers, or so long without any: nobody is there */
#define ALONE_NS (3 * NS_PER_S)
#define STOPPED INT64_C(-2)

static struct master_counts *counted(struct master *m)
{
	return &m->counts[m->measuring];
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) */
static uint64_t next_random(struct master *m)
{
	uint64_t z = m->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static int64_t draw_interval(struct master *m)
{
	return m->interval_min_ns +
	       (int64_t)(next_random(m) % (uint64_t)(m->interval_max_ns - m->interval_min_ns + 1));
}

/* Notes an edge that does not answer the present stimulus, or that came while no stimulus waited. */
static __attribute__((noinline)) void count_noise(struct master *m, const struct edge *edge,
						  int64_t waited_for)
{
	struct master_counts *c = counted(m);

	c->doubled += edge->count - 1;
	if (edge->number == EDGE_UNNUMBERED && m->owed) {
		m->owed--;
		c->late++;
	} else if (edge->number == EDGE_UNNUMBERED || edge->number >= waited_for) {
		c->early++;
	} else if (edge->number > m->answered) {
		c->late++;
	} else {
		c->doubled++;
	}
}

/* Waits for an edge until this is due. Returns 0 or an errno; ETIMEDOUT: no edge came. */
static int receive_until(struct path_end *end, struct edge *edge, int64_t due_ns)
{
	int64_t left_ns = due_ns - clock_now_ns(CLOCK_MONOTONIC);
	struct timespec left = ns_timespec(left_ns > 0 ? left_ns : 0);
	struct pollfd in = {.fd = end->in, .events = POLLIN};
	int ready;

	if (RUNTIME_IS_COKERNEL)
		return end->kind->receive_until(end, edge, due_ns);
	ready = ppoll(&in, 1, &left, NULL);
	return ready > 0 ? end->kind->receive(end, edge) : ready ? errno : ETIMEDOUT;
}

/* Waits until the stimulus is due. Edges that come meanwhile are noise. Returns false if stopped. */
static bool wait_gap(struct master *m, int64_t due_ns)
{
	struct edge edge = {.count = 1};

	for (;;) {
		int error = receive_until(m->end, &edge, due_ns);

		if (atomic_load_explicit(&harness_shared.stop, memory_order_relaxed))
			return false;
		if (!error)
			count_noise(m, &edge, m->number + 1);
		else if (error == ETIMEDOUT)
			return true;
	}
}

/* Handles an answer that did not come at once. Returns back_ns, MASTER_LOST or STOPPED; 0: continue to
   wait. */
static __attribute__((noinline)) int64_t slow_path(struct master *m, int error, int64_t sent_ns)
{
	if (error == EINTR) {
		if (atomic_load(&harness_shared.stop))
			return STOPPED;
		return atomic_load(&m->given_up_ns) == sent_ns ? MASTER_LOST : 0;
	}
	if (error == ECONNREFUSED)
		return 0;
	m->error = error;
	return STOPPED;
}

/* The measured path: reads the clock, makes an edge, waits for one, reads the clock. */
static int64_t stimulate(struct master *m, int64_t *sent_ns)
{
	struct path_end *end = m->end;
	const struct path_kind *kind = end->kind;
	int64_t back_ns = 0, number = ++m->number;
	struct edge edge;
	int error;

	*sent_ns = clock_now_ns(CLOCK_MONOTONIC);
	atomic_store_explicit(&m->waiting_ns, *sent_ns, memory_order_relaxed);
	error = kind->send(end, number);
	while (!back_ns) {
		if (!error)
			error = kind->receive(end, &edge);
		back_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (__builtin_expect(error != 0, 0)) {
			back_ns = slow_path(m, error, *sent_ns);
			error = 0;
		} else if (__builtin_expect(edge.number != number && edge.number != EDGE_UNNUMBERED, 0)) {
			count_noise(m, &edge, number + 1);
			back_ns = 0;
		}
	}
	atomic_store_explicit(&m->waiting_ns, 0, memory_order_relaxed);
	if (back_ns < 0)
		return back_ns;
	counted(m)->doubled += edge.count - 1;
	return kind->stamped ? edge.time_ns : back_ns;
}

static void keep(struct master *m, const struct stimulus *stimulus)
{
	size_t slot;

	if (!slot_ring_next(&m->ring, &slot)) {
		m->not_kept++;
		return;
	}
	m->slots[slot] = *stimulus;
	slot_ring_push(&m->ring);
}

/* Returns false if no answer came for too long. */
static bool somebody_there(struct master *m, int64_t now_ns)
{
	if (m->answered || (m->number < ALONE_STIMULI && now_ns - m->start_ns < ALONE_NS))
		return true;
	m->nobody = true;
	return false;
}

static void begin_measuring(struct master *m)
{
	usage_read(m->thread.schedstat, &m->thread.before);
	m->thread.usage_known = true;
	m->measuring = true;
}

static void note_late(struct master_counts *c, int64_t by_ns)
{
	if (by_ns > c->late_by_max_ns)
		c->late_by_max_ns = by_ns;
}

static void drive(struct harness_thread *thread)
{
	struct master *m = container_of(thread, struct master, thread);
	int64_t due_ns = m->start_ns;

	while (wait_gap(m, due_ns)) {
		struct stimulus stimulus = {0};
		struct master_counts *c;
		int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

		if (!m->measuring && now_ns >= m->due.measured_ns)
			begin_measuring(m);
		if (now_ns >= m->due.end_ns) {
			if (due_ns < m->due.end_ns)
				note_late(&m->counts[1], now_ns - due_ns);
			if (m->due.interval_ns)
				due_end(&m->due, &due_ns, now_ns, m->counts);
			break;
		}
		if (harness_options.count && m->counts[1].stimuli == harness_options.count)
			break;
		stimulus.back_ns = stimulate(m, &stimulus.sent_ns);
		if (stimulus.back_ns == STOPPED || stimulus.sent_ns >= m->due.end_ns)
			break;
		c = &m->counts[stimulus.sent_ns >= m->due.measured_ns];
		note_late(c, stimulus.sent_ns - due_ns);
		now_ns = stimulus.back_ns;
		c->stimuli++;
		if (stimulus.back_ns == MASTER_LOST) {
			now_ns = clock_now_ns(CLOCK_MONOTONIC);
			c->lost++;
			m->owed++;
			if (!somebody_there(m, now_ns))
				break;
		} else {
			c->answers++;
			m->answered = m->number;
		}
		if (m->due.interval_ns) {
			due_ns += m->due.interval_ns;
			due_pass(&m->due, &stimulus, &due_ns, now_ns, m->counts);
		} else {
			due_ns = now_ns + draw_interval(m);
		}
		keep(m, &stimulus);
	}
	usage_read(thread->schedstat, &thread->after);
	/* Ends the slave, even on another machine. The message may not arrive. */
	if (m->tells_over)
		m->end->kind->send(m->end, EDGE_OVER);
}

bool master_make(struct master *m)
{
	m->slots = memory_get(ROOM * sizeof(*m->slots));
	if (!m->slots)
		return false;
	slot_ring_init(&m->ring, ROOM);
	m->thread.measure = drive;
	return true;
}

/* Repeat this, because a signal that comes just before the master waits does not wake it. */
void master_give_up(struct master *m, int64_t timeout_ns)
{
	int64_t waiting_ns = atomic_load(&m->waiting_ns);

	if (!waiting_ns || clock_now_ns(CLOCK_MONOTONIC) - waiting_ns < timeout_ns)
		return;
	atomic_store(&m->given_up_ns, waiting_ns);
	if (!atomic_load(&m->thread.done))
		syscall(SYS_tgkill, getpid(), m->thread.tid,
			SIGUSR1); /* a co-kernel has its own pthread_kill */
}
