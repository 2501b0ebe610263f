// SPDX-License-Identifier: MIT
/*
 * The fast solver. A thread has an arc of the circle and the opposite arc, so that its spokes stay inside.
 * An arc has an array for each coordinate, with a copy of the neighbour's border node at each end. A
 * thread leaves its border nodes for its neighbours in two mailboxes by turns, so that one barrier a step
 * is enough.
 */
#include <string.h>

#include "base/cache_line.h"
#include "base/memory.h"
#include "ext/tire/engine/kernel.h"
#include "ext/tire/engine/solver.h"

enum { FIRST, LAST, BORDERS };

/* A thread's own data, except the mailboxes, which its neighbours read. */
struct part {
	_Alignas(CACHE_LINE) struct tire_state mailbox[2][TIRE_ARCS][BORDERS];
	_Alignas(CACHE_LINE) struct tire_arc arc[TIRE_ARCS];
	int64_t begin, count; /* pairs of a node and its opposite */
	unsigned int now;     /* which mailbox to read */
	struct tire_forces *forces;
};

struct tire {
	const struct tire_model *model;
	const struct tire_kernel *kernel;
	struct part *parts; /* one for each thread */
	unsigned int part_count;
};

static size_t coordinate_bytes(int64_t count)
{
	return (size_t)(count + 2) * sizeof(double);
}

static size_t halo_bytes(int64_t nodes, unsigned int threads)
{
	return threads * (sizeof(struct part) + sizeof(struct tire_forces)) + 4 * coordinate_bytes(nodes) +
	       (size_t)threads * 4 * TIRE_ARCS * (2 * sizeof(double) + CACHE_LINE);
}

static bool make_arc(struct tire_arc *arc, int64_t count)
{
	arc->x = memory_get(coordinate_bytes(count));
	arc->y = memory_get(coordinate_bytes(count));
	arc->vx = memory_get(coordinate_bytes(count));
	arc->vy = memory_get(coordinate_bytes(count));
	return arc->x && arc->y && arc->vx && arc->vy;
}

static void *halo_make(const struct tire_model *m, unsigned int threads)
{
	struct tire *tire = memory_get(sizeof(*tire));
	int64_t pairs = m->nodes / 2;

	if (!tire)
		return NULL;
	tire->model = m;
	tire->kernel = tire_kernel(0);
	tire->part_count = threads;
	tire->parts = memory_get(threads * sizeof(*tire->parts));
	if (!tire->parts)
		return NULL;
	for (unsigned int t = 0; t < threads; t++) {
		struct part *p = &tire->parts[t];

		p->begin = tire_share(pairs, threads, t);
		p->count = tire_share(pairs, threads, t + 1) - p->begin;
		p->forces = memory_get(sizeof(*p->forces));
		if (!p->forces || !make_arc(&p->arc[0], p->count) || !make_arc(&p->arc[1], p->count))
			return NULL;
	}
	return tire;
}

static void put(struct tire_arc *arc, int64_t at, struct tire_state state)
{
	arc->x[at] = state.x;
	arc->y[at] = state.y;
	arc->vx[at] = state.vx;
	arc->vy[at] = state.vy;
}

static struct tire_state get(const struct tire_arc *arc, int64_t at)
{
	return (struct tire_state){arc->x[at], arc->y[at], arc->vx[at], arc->vy[at]};
}

static void publish(struct part *p, unsigned int box)
{
	for (int a = 0; a < TIRE_ARCS; a++) {
		p->mailbox[box][a][FIRST] = get(&p->arc[a], 1);
		p->mailbox[box][a][LAST] = get(&p->arc[a], p->count);
	}
}

/* Arc a of thread t is arc number a * threads + t around the circle. */
static struct tire_state border(const struct tire *tire, unsigned int number, unsigned int box, int which)
{
	unsigned int around = number % (TIRE_ARCS * tire->part_count);

	return tire->parts[around % tire->part_count].mailbox[box][around / tire->part_count][which];
}

static void halo_reset(void *arg, unsigned int thread)
{
	const struct tire *tire = arg;
	struct part *p = &tire->parts[thread];
	int64_t half = tire->model->nodes / TIRE_ARCS;

	for (int a = 0; a < TIRE_ARCS; a++) {
		for (int64_t i = 0; i < p->count; i++)
			put(&p->arc[a], i + 1, tire_model_start(tire->model, a * half + p->begin + i));
	}
	p->now = 0;
	publish(p, 0);
}

static void halo_step(void *arg, unsigned int thread)
{
	const struct tire *tire = arg;
	struct part *p = &tire->parts[thread];

	for (unsigned int a = 0; a < TIRE_ARCS; a++) {
		unsigned int number = a * tire->part_count + thread;
		unsigned int before = number + TIRE_ARCS * tire->part_count - 1;

		put(&p->arc[a], 0, border(tire, before, p->now, LAST));
		put(&p->arc[a], p->count + 1, border(tire, number + 1, p->now, FIRST));
	}
	tire_kernel_step(tire->kernel, tire->model, p->count, p->arc, p->forces);
	p->now = !p->now;
	publish(p, p->now);
}

static struct tire_state halo_state(const void *arg, int64_t i)
{
	const struct tire *tire = arg;
	int64_t half = tire->model->nodes / TIRE_ARCS, pair = i % half;

	for (unsigned int t = 0; t < tire->part_count; t++) {
		const struct part *p = &tire->parts[t];

		if (pair < p->begin + p->count)
			return get(&p->arc[i / half], pair - p->begin + 1);
	}
	return (struct tire_state){0};
}

const struct tire_solver tire_halo = {halo_bytes, halo_make, halo_reset, halo_step, halo_state};
