/* SPDX-License-Identifier: MIT */
/* What every solver of the tire gives: its threads compute steps, each for its own nodes. */
#ifndef RTGAUGE_TIRE_SOLVER_H
#define RTGAUGE_TIRE_SOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/tire/model.h"

/* Between two meetings of all threads there is one step, but where a solver runs freely or alone. */
struct tire_solver {
	/* Memory that a tire of these numbers takes. */
	size_t (*bytes)(int64_t nodes, unsigned int threads);
	/* Once, before the threads are there. The model stays; false: no memory. */
	bool (*make)(const struct tire_model *model, unsigned int threads);
	/* Each thread: its nodes as they begin. All threads meet after that. */
	void (*reset)(unsigned int thread);
	/* Each thread: one step of its nodes. */
	void (*step)(unsigned int thread);
	/* Node i now, while no thread is in a step. */
	struct tire_state (*state)(int64_t i);
};

/* One thread, no locks: the paper's algorithm alone. */
extern const struct tire_solver tire_serial;
/* The paper's algorithm 1: a binary semaphore a node; two buffers make a step exact. */
extern const struct tire_solver tire_semaphore;
/* The same with one buffer: a neighbour may be a step ahead. */
extern const struct tire_solver tire_free_running;
/* A thread has an arc and the one opposite it; arrays that the compiler vectorises. */
extern const struct tire_solver tire_halo;

/* Where thread t's part of `count` things begins; that of thread t + 1 is where it ends. */
static inline int64_t tire_share(int64_t count, unsigned int threads, unsigned int t)
{
	return count * t / threads;
}

#endif
