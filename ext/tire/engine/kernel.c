// SPDX-License-Identifier: MIT
#include "ext/tire/engine/kernel.h"

#include <stddef.h>

#define INLINE static inline __attribute__((always_inline))

/* Computes the forces on the nodes at `on` from springs to the nodes at `by`. Both begin at the same place
   in their arcs. */
INLINE void spring_row(int64_t count, double stiffness, double damping, double rest_force,
		       const struct tire_arc *on, const struct tire_arc *by, double *restrict fx,
		       double *restrict fy)
{
	const double *x0 = on->x, *y0 = on->y, *vx0 = on->vx, *vy0 = on->vy;
	const double *x1 = by->x, *y1 = by->y, *vx1 = by->vx, *vy1 = by->vy;

	for (int64_t i = 0; i < count; i++)
		tire_spring(stiffness, damping, rest_force, x1[i] - x0[i], y1[i] - y0[i], vx1[i] - vx0[i],
			    vy1[i] - vy0[i], &fx[i], &fy[i]);
}

/* Moves nodes under the forces of the springs on both sides and of their spokes. sign: of the spokes'
 * force. */
INLINE void move_row(int64_t count, const struct tire_model *m, double sign, const struct tire_arc *arc,
		     const double *restrict side_x, const double *restrict side_y,
		     const double *restrict spoke_x, const double *restrict spoke_y)
{
	const double kick = m->kick, fall = m->fall, floor_y = m->floor_y;
	double *restrict x = arc->x, *restrict y = arc->y, *restrict vx = arc->vx, *restrict vy = arc->vy;

	for (int64_t i = 0; i < count; i++)
		tire_move(kick, fall, floor_y, (side_x[i + 1] - side_x[i]) + sign * spoke_x[i],
			  (side_y[i + 1] - side_y[i]) + sign * spoke_y[i], &x[i], &y[i], &vx[i], &vy[i]);
}

/* The two loops, for one kind of processor. */
#define KIND(kind)                                                                                           \
	TARGET_##kind static void spring_row_##kind(int64_t count, double stiffness, double damping,         \
						    double rest_force, const struct tire_arc *on,            \
						    const struct tire_arc *by, double *restrict fx,          \
						    double *restrict fy)                                     \
	{                                                                                                    \
		spring_row(count, stiffness, damping, rest_force, on, by, fx, fy);                           \
	}                                                                                                    \
	TARGET_##kind static void move_row_##kind(                                                           \
		int64_t count, const struct tire_model *m, double sign, const struct tire_arc *arc,          \
		const double *restrict side_x, const double *restrict side_y,                                \
		const double *restrict spoke_x, const double *restrict spoke_y)                              \
	{                                                                                                    \
		move_row(count, m, sign, arc, side_x, side_y, spoke_x, spoke_y);                             \
	}                                                                                                    \
	static const struct tire_kernel kernel_##kind = {#kind, spring_row_##kind, move_row_##kind};

#define TARGET_baseline
KIND(baseline)

#ifdef __x86_64__
#define TARGET_avx2 __attribute__((target("avx2")))
KIND(avx2)
#endif

const struct tire_kernel *tire_kernel(unsigned int nth)
{
	unsigned int better = 0;

#ifdef __x86_64__
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2")) {
		if (nth == 0)
			return &kernel_avx2;
		better = 1;
	}
#endif
	return nth == better ? &kernel_baseline : NULL;
}

static struct tire_arc from(const struct tire_arc *arc, int64_t at)
{
	return (struct tire_arc){arc->x + at, arc->y + at, arc->vx + at, arc->vy + at};
}

static void forces(const struct tire_kernel *k, const struct tire_model *m, int64_t count,
		   const struct tire_arc here[TIRE_ARCS], struct tire_forces *f)
{
	for (int a = 0; a < TIRE_ARCS; a++) {
		const struct tire_arc next = from(&here[a], 1);

		k->spring_row(count, m->stiffness, m->damping, m->side_force, &here[a], &next,
			      f->side_x[a] + 1, f->side_y[a] + 1);
	}
	k->spring_row(count, m->stiffness, m->damping, m->spoke_force, &here[0], &here[1], f->spoke_x,
		      f->spoke_y);
}

void tire_kernel_step(const struct tire_kernel *k, const struct tire_model *m, int64_t count,
		      struct tire_arc arc[TIRE_ARCS], struct tire_forces *f)
{
	for (int a = 0; m->springs && a < TIRE_ARCS; a++) {
		const struct tire_arc first = from(&arc[a], 1);

		k->spring_row(1, m->stiffness, m->damping, m->side_force, &arc[a], &first, f->side_x[a],
			      f->side_y[a]);
	}
	for (int64_t begin = 0; begin < count; begin += TIRE_BLOCK) {
		int64_t length = count - begin < TIRE_BLOCK ? count - begin : TIRE_BLOCK;
		const struct tire_arc here[TIRE_ARCS] = {from(&arc[0], begin + 1), from(&arc[1], begin + 1)};

		if (m->springs)
			forces(k, m, length, here, f);
		for (int a = 0; m->integration && a < TIRE_ARCS; a++)
			k->move_row(length, m, a ? -1 : 1, &here[a], f->side_x[a], f->side_y[a], f->spoke_x,
				    f->spoke_y);
		/* This block's last spring is the first of the next block. */
		for (int a = 0; a < TIRE_ARCS; a++) {
			f->side_x[a][0] = f->side_x[a][length];
			f->side_y[a][0] = f->side_y[a][length];
		}
	}
}
