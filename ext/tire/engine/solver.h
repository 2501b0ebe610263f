/* SPDX-License-Identifier: MIT */
/* What every solver of the tire provides. Its threads compute steps, each for its own nodes. */
#ifndef RTGAUGE_TIRE_SOLVER_H
#define RTGAUGE_TIRE_SOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ext/tire/engine/model.h"

/* All threads meet after each step, unless the solver runs freely or alone. */
struct tire_solver {
	/* Returns the memory of a tire with these numbers. */
	size_t (*bytes)(int64_t nodes, unsigned int threads);
	/* Called once, before the threads start. The model must stay valid. Returns the tire for the
	 * functions below; NULL: there is no memory. */
	void *(*make)(const struct tire_model *model, unsigned int threads);
	/* Called by each thread. Sets its nodes to the beginning. All threads meet afterwards. */
	void (*reset)(void *tire, unsigned int thread);
	/* Called by each thread. Computes one step of its nodes. */
	void (*step)(void *tire, unsigned int thread);
	/* Returns node i, while no thread computes. */
	struct tire_state (*state)(const void *tire, int64_t i);
};

/* One thread without locks: the paper's algorithm alone. */
extern const struct tire_solver tire_serial;
/* The paper's algorithm 1: a binary semaphore for each node. Two buffers make a step exact. */
extern const struct tire_solver tire_semaphore;
/* The same with one buffer, so that a neighbour may be a step ahead. */
extern const struct tire_solver tire_free_running;
/* A thread has an arc and the opposite arc, in arrays that the compiler vectorises. */
extern const struct tire_solver tire_halo;

/* Returns the beginning of thread t's part of `count` things. The part of thread t + 1 begins at its end. */
static inline int64_t tire_share(int64_t count, unsigned int threads, unsigned int t)
{
	return count * t / threads;
}

#endif
