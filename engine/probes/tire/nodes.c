// SPDX-License-Identifier: MIT
/*
 * The paper's solver (Garre et al. 2014, algorithm 1): a thread reads the nodes next to its own, computes
 * every force on its nodes, moves them, and writes them. A binary semaphore for each node guards each read
 * and write; `serial` is the same without semaphores.
 */
#include <semaphore.h>

#include "base/memory.h"
#include "probes/tire/solver.h"

struct node {
	sem_t semaphore;
	struct tire_state state[2];
};

enum { NEXT, PREVIOUS, OPPOSITE, ADJACENT };

/* A thread's own data. */
struct part {
	int64_t begin, end;
	unsigned int now;	     /* which of the two buffers to read */
	struct tire_state *adjacent; /* ADJACENT of each node */
	struct tire_state *fresh;
	struct force {
		double x, y;
	} * side, *spoke; /* side: from the one before the first on */
};

static const struct tire_model *model;
static struct node *nodes;
static struct part *parts;

static size_t part_bytes(int64_t count)
{
	return (size_t)count * (ADJACENT * sizeof(struct tire_state) + sizeof(struct tire_state) +
				2 * sizeof(struct force)) +
	       sizeof(struct force);
}

static size_t nodes_bytes(int64_t count, unsigned int threads)
{
	return (size_t)count * sizeof(struct node) + part_bytes(count) + threads * sizeof(struct part);
}

static bool nodes_make(const struct tire_model *m, unsigned int threads)
{
	model = m;
	nodes = memory_get((size_t)m->nodes * sizeof(*nodes));
	parts = memory_get(threads * sizeof(*parts));
	if (!nodes || !parts)
		return false;
	for (int64_t i = 0; i < m->nodes; i++)
		sem_init(&nodes[i].semaphore, 0, 1);
	for (unsigned int t = 0; t < threads; t++) {
		struct part *p = &parts[t];
		size_t count;

		p->begin = tire_share(m->nodes, threads, t);
		p->end = tire_share(m->nodes, threads, t + 1);
		count = (size_t)(p->end - p->begin);
		p->adjacent = memory_get(count * ADJACENT * sizeof(*p->adjacent));
		p->fresh = memory_get(count * sizeof(*p->fresh));
		p->side = memory_get((count + 1) * sizeof(*p->side));
		p->spoke = memory_get(count * sizeof(*p->spoke));
		if (!p->adjacent || !p->fresh || !p->side || !p->spoke)
			return false;
	}
	return true;
}

static void nodes_reset(unsigned int thread)
{
	struct part *p = &parts[thread];

	p->now = 0;
	for (int64_t i = p->begin; i < p->end; i++)
		nodes[i].state[0] = tire_model_start(model, i);
}

static struct tire_state nodes_state(int64_t i)
{
	return nodes[i].state[parts[0].now];
}

/* Binary: a waiting thread sleeps, and a signal does not end the wait. */
static inline void take(struct node *node)
{
	while (sem_wait(&node->semaphore))
		;
}

static inline void read_node(int64_t i, unsigned int buffer, bool locked, struct tire_state *copy)
{
	if (locked)
		take(&nodes[i]);
	*copy = nodes[i].state[buffer];
	if (locked)
		sem_post(&nodes[i].semaphore);
}

static inline __attribute__((always_inline)) void read_adjacent(struct part *p, bool locked)
{
	int64_t last = model->nodes - 1, half = model->nodes / 2;

	for (int64_t i = p->begin; i < p->end; i++) {
		struct tire_state *adjacent = &p->adjacent[(i - p->begin) * ADJACENT];

		read_node(i == last ? 0 : i + 1, p->now, locked, &adjacent[NEXT]);
		read_node(i == 0 ? last : i - 1, p->now, locked, &adjacent[PREVIOUS]);
		read_node(i < half ? i + half : i - half, p->now, locked, &adjacent[OPPOSITE]);
	}
}

static inline struct force spring(double rest_force, const struct tire_state *on, const struct tire_state *by)
{
	struct force force;

	tire_spring(model->stiffness, model->damping, rest_force, by->x - on->x, by->y - on->y,
		    by->vx - on->vx, by->vy - on->vy, &force.x, &force.y);
	return force;
}

/* Its springs along the circle, one more than its nodes, and its spokes. */
static void compute_forces(struct part *p)
{
	const struct tire_state *first = &nodes[p->begin].state[p->now];

	p->side[0] = spring(model->side_force, &p->adjacent[PREVIOUS], first);
	for (int64_t i = p->begin; i < p->end; i++) {
		const struct tire_state *own = &nodes[i].state[p->now];
		const struct tire_state *adjacent = &p->adjacent[(i - p->begin) * ADJACENT];

		p->side[i - p->begin + 1] = spring(model->side_force, own, &adjacent[NEXT]);
		p->spoke[i - p->begin] = spring(model->spoke_force, own, &adjacent[OPPOSITE]);
	}
}

static void integrate(struct part *p)
{
	for (int64_t i = p->begin; i < p->end; i++) {
		int64_t at = i - p->begin;
		const struct force *side = &p->side[at], *spoke = &p->spoke[at];
		struct tire_state *fresh = &p->fresh[at];

		*fresh = nodes[i].state[p->now];
		tire_move(model->kick, model->fall, model->floor_y, (side[1].x - side[0].x) + spoke->x,
			  (side[1].y - side[0].y) + spoke->y, &fresh->x, &fresh->y, &fresh->vx, &fresh->vy);
	}
}

static void write_own(struct part *p, unsigned int buffer, bool locked)
{
	for (int64_t i = p->begin; i < p->end; i++) {
		if (locked)
			take(&nodes[i]);
		nodes[i].state[buffer] = p->fresh[i - p->begin];
		if (locked)
			sem_post(&nodes[i].semaphore);
	}
}

static inline __attribute__((always_inline)) void nodes_step(unsigned int thread, bool locked, bool buffered)
{
	struct part *p = &parts[thread];
	unsigned int next = buffered ? !p->now : p->now;

	read_adjacent(p, locked);
	if (model->springs)
		compute_forces(p);
	if (model->integration)
		integrate(p);
	write_own(p, next, locked);
	p->now = next;
}

static void serial_step(unsigned int thread)
{
	nodes_step(thread, false, true);
}

static void semaphore_step(unsigned int thread)
{
	nodes_step(thread, true, true);
}

static void free_running_step(unsigned int thread)
{
	nodes_step(thread, true, false);
}

const struct tire_solver tire_serial = {nodes_bytes, nodes_make, nodes_reset, serial_step, nodes_state};
const struct tire_solver tire_semaphore = {nodes_bytes, nodes_make, nodes_reset, semaphore_step, nodes_state};
const struct tire_solver tire_free_running = {nodes_bytes, nodes_make, nodes_reset, free_running_step,
					      nodes_state};
