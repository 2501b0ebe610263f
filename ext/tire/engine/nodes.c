// SPDX-License-Identifier: MIT
/*
 * The paper's solver (Garre et al. 2014, algorithm 1). A thread reads the nodes next to its own, computes
 * every force on its nodes, moves them, and writes them. A binary semaphore for each node guards each read
 * and write; `serial` is the same without semaphores.
 */
#include <semaphore.h>

#include "base/memory.h"
#include "ext/tire/engine/solver.h"

struct node {
	sem_t semaphore;
	struct tire_state state[2];
};

enum { NEXT, PREVIOUS, OPPOSITE, ADJACENT };

/* A thread's own data. */
struct part {
	int64_t begin, end;
	unsigned int now;	     /* which of the two buffers to read */
	struct tire_state *adjacent; /* ADJACENT nodes for each node */
	struct tire_state *fresh;
	struct force {
		double x, y;
	} * side, *spoke; /* side: from the spring before the first node on */
};

struct tire {
	const struct tire_model *model;
	struct node *nodes;
	struct part *parts; /* one for each thread */
};

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

static void *nodes_make(const struct tire_model *m, unsigned int threads)
{
	struct tire *tire = memory_get(sizeof(*tire));

	if (!tire)
		return NULL;
	tire->model = m;
	tire->nodes = memory_get((size_t)m->nodes * sizeof(*tire->nodes));
	tire->parts = memory_get(threads * sizeof(*tire->parts));
	if (!tire->nodes || !tire->parts)
		return NULL;
	for (int64_t i = 0; i < m->nodes; i++)
		sem_init(&tire->nodes[i].semaphore, 0, 1);
	for (unsigned int t = 0; t < threads; t++) {
		struct part *p = &tire->parts[t];
		size_t count;

		p->begin = tire_share(m->nodes, threads, t);
		p->end = tire_share(m->nodes, threads, t + 1);
		count = (size_t)(p->end - p->begin);
		p->adjacent = memory_get(count * ADJACENT * sizeof(*p->adjacent));
		p->fresh = memory_get(count * sizeof(*p->fresh));
		p->side = memory_get((count + 1) * sizeof(*p->side));
		p->spoke = memory_get(count * sizeof(*p->spoke));
		if (!p->adjacent || !p->fresh || !p->side || !p->spoke)
			return NULL;
	}
	return tire;
}

static void nodes_reset(void *arg, unsigned int thread)
{
	const struct tire *tire = arg;
	struct part *p = &tire->parts[thread];

	p->now = 0;
	for (int64_t i = p->begin; i < p->end; i++)
		tire->nodes[i].state[0] = tire_model_start(tire->model, i);
}

static struct tire_state nodes_state(const void *arg, int64_t i)
{
	const struct tire *tire = arg;

	return tire->nodes[i].state[tire->parts[0].now];
}

/* Binary: a waiting thread sleeps, and a signal does not end the wait. */
static inline void take(struct node *node)
{
	while (sem_wait(&node->semaphore))
		;
}

static inline void read_node(struct node *node, unsigned int buffer, bool locked, struct tire_state *copy)
{
	if (locked)
		take(node);
	*copy = node->state[buffer];
	if (locked)
		sem_post(&node->semaphore);
}

static inline __attribute__((always_inline)) void read_adjacent(const struct tire *tire, struct part *p,
								bool locked)
{
	struct node *nodes = tire->nodes;
	int64_t last = tire->model->nodes - 1, half = tire->model->nodes / 2;

	for (int64_t i = p->begin; i < p->end; i++) {
		struct tire_state *adjacent = &p->adjacent[(i - p->begin) * ADJACENT];

		read_node(&nodes[i == last ? 0 : i + 1], p->now, locked, &adjacent[NEXT]);
		read_node(&nodes[i == 0 ? last : i - 1], p->now, locked, &adjacent[PREVIOUS]);
		read_node(&nodes[i < half ? i + half : i - half], p->now, locked, &adjacent[OPPOSITE]);
	}
}

static inline struct force spring(const struct tire_model *model, double rest_force,
				  const struct tire_state *on, const struct tire_state *by)
{
	struct force force;

	tire_spring(model->stiffness, model->damping, rest_force, by->x - on->x, by->y - on->y,
		    by->vx - on->vx, by->vy - on->vy, &force.x, &force.y);
	return force;
}

/* The thread's springs along the circle, one more than its nodes, and its spokes. */
static void compute_forces(const struct tire *tire, struct part *p)
{
	const struct tire_model *model = tire->model;
	const struct tire_state *first = &tire->nodes[p->begin].state[p->now];

	p->side[0] = spring(model, model->side_force, &p->adjacent[PREVIOUS], first);
	for (int64_t i = p->begin; i < p->end; i++) {
		const struct tire_state *own = &tire->nodes[i].state[p->now];
		const struct tire_state *adjacent = &p->adjacent[(i - p->begin) * ADJACENT];

		p->side[i - p->begin + 1] = spring(model, model->side_force, own, &adjacent[NEXT]);
		p->spoke[i - p->begin] = spring(model, model->spoke_force, own, &adjacent[OPPOSITE]);
	}
}

static void integrate(const struct tire *tire, struct part *p)
{
	const struct tire_model *model = tire->model;

	for (int64_t i = p->begin; i < p->end; i++) {
		int64_t at = i - p->begin;
		const struct force *side = &p->side[at], *spoke = &p->spoke[at];
		struct tire_state *fresh = &p->fresh[at];

		*fresh = tire->nodes[i].state[p->now];
		tire_move(model->kick, model->fall, model->floor_y, (side[1].x - side[0].x) + spoke->x,
			  (side[1].y - side[0].y) + spoke->y, &fresh->x, &fresh->y, &fresh->vx, &fresh->vy);
	}
}

static void write_own(struct node *nodes, struct part *p, unsigned int buffer, bool locked)
{
	for (int64_t i = p->begin; i < p->end; i++) {
		if (locked)
			take(&nodes[i]);
		nodes[i].state[buffer] = p->fresh[i - p->begin];
		if (locked)
			sem_post(&nodes[i].semaphore);
	}
}

static inline __attribute__((always_inline)) void nodes_step(const struct tire *tire, unsigned int thread,
							     bool locked, bool buffered)
{
	struct part *p = &tire->parts[thread];
	unsigned int next = buffered ? !p->now : p->now;

	read_adjacent(tire, p, locked);
	if (tire->model->springs)
		compute_forces(tire, p);
	if (tire->model->integration)
		integrate(tire, p);
	write_own(tire->nodes, p, next, locked);
	p->now = next;
}

static void serial_step(void *tire, unsigned int thread)
{
	nodes_step(tire, thread, false, true);
}

static void semaphore_step(void *tire, unsigned int thread)
{
	nodes_step(tire, thread, true, true);
}

static void free_running_step(void *tire, unsigned int thread)
{
	nodes_step(tire, thread, true, false);
}

const struct tire_solver tire_serial = {nodes_bytes, nodes_make, nodes_reset, serial_step, nodes_state};
const struct tire_solver tire_semaphore = {nodes_bytes, nodes_make, nodes_reset, semaphore_step, nodes_state};
const struct tire_solver tire_free_running = {nodes_bytes, nodes_make, nodes_reset, free_running_step,
					      nodes_state};
