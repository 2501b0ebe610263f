/* SPDX-License-Identifier: MIT */
/* Computes a step of two opposite arcs, in blocks that fit the first cache. */
#ifndef RTGAUGE_TIRE_KERNEL_H
#define RTGAUGE_TIRE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "ext/tire/engine/model.h"

#define TIRE_ARCS 2
#define TIRE_BLOCK 256

/* The nodes are 1 ... count; 0 and count + 1 are copies of the neighbours' nodes. */
struct tire_arc {
	double *x, *y, *vx, *vy;
};

/* The forces of a block. `side` begins with the spring before the first node. */
struct tire_forces {
	double side_x[TIRE_ARCS][TIRE_BLOCK + 1], side_y[TIRE_ARCS][TIRE_BLOCK + 1];
	double spoke_x[TIRE_BLOCK], spoke_y[TIRE_BLOCK];
};

/* The loops, compiled for one kind of processor. All kinds give the same bits, because no kind contracts
 * or reorders operations. */
struct tire_kernel {
	const char *name; /* "avx2" or "baseline" */
	void (*spring_row)(int64_t count, double stiffness, double damping, double rest_force,
			   const struct tire_arc *on, const struct tire_arc *by, double *restrict fx,
			   double *restrict fy);
	void (*move_row)(int64_t count, const struct tire_model *m, double sign, const struct tire_arc *arc,
			 const double *restrict side_x, const double *restrict side_y,
			 const double *restrict spoke_x, const double *restrict spoke_y);
};

/* Returns the nth kind that this processor can run, the fastest first; NULL after the last. */
const struct tire_kernel *tire_kernel(unsigned int nth);

/* Computes a step of `count` pairs of nodes. The copies of their neighbours must be in place. */
void tire_kernel_step(const struct tire_kernel *k, const struct tire_model *m, int64_t count,
		      struct tire_arc arc[TIRE_ARCS], struct tire_forces *f);

#endif
