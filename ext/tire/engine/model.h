/* SPDX-License-Identifier: MIT */
/*
 * The tire: n point masses on a circle above a floor, each joined by a spring-damper to its two neighbours
 * and to the opposite node (Garre et al. 2014, sec. 4.1). SI units.
 *
 * Every solver computes a step with the same operations in the same order for each node, so that all
 * results are equal bit for bit. Let R(i) be the force on node i from its spring to node i + 1, and S(i)
 * the force from its spring to the opposite node; the force on node i is then (R(i) - R(i - 1)) + S(i).
 */
#ifndef RTGAUGE_TIRE_MODEL_H
#define RTGAUGE_TIRE_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define TIRE_NODES_MAX 16000000
#define TIRE_STEP_S 0.01

struct tire_state {
	double x, y, vx, vy;
};

struct tire_model {
	/* The wanted parameters. stiffness and damping are 0 until tire_model_settle has chosen them. */
	int64_t nodes;
	double mass, radius, height, gravity, speed; /* mass: of the whole tire */
	double stiffness, damping;
	bool floor;
	bool springs, integration; /* false: a step leaves it out */

	/* Computed from these, for the step. */
	double side_force, spoke_force; /* stiffness times rest length */
	double kick;			/* step / mass of a node */
	double fall;			/* step times gravity */
	double floor_y;
};

/* Sets the defaults that depend on other parameters, and everything that is computed from parameters. */
void tire_model_settle(struct tire_model *m);

/*
 * Returns whether explicit Euler is stable with this stiffness and damping (ext/tire/README.md). `least`
 * and `most` are the bounds of the damping.
 */
bool tire_model_stable(const struct tire_model *m, double *least, double *most);

/* Node i at the beginning. */
struct tire_state tire_model_start(const struct tire_model *m, int64_t i);

/* Far below the square of any length of the model. It prevents division by 0 for a spring of length 0. */
#define TIRE_TINY 1e-30

/* Returns the force of a spring-damper on a node whose other end is at (dx, dy) from it, moving away at
   (dvx, dvy). */
static inline __attribute__((always_inline)) void tire_spring(double stiffness, double damping,
							      double rest_force, double dx, double dy,
							      double dvx, double dvy, double *fx, double *fy)
{
	double length = sqrt(dx * dx + dy * dy + TIRE_TINY);
	double pull = stiffness - rest_force / length;

	*fx = pull * dx + damping * dvx;
	*fy = pull * dy + damping * dvy;
}

/* A step of explicit Euler under a force, followed by the floor. It has no branch, so that a contact costs
 * no time. */
static inline __attribute__((always_inline)) void tire_move(double kick, double fall, double floor_y,
							    double fx, double fy, double *x, double *y,
							    double *vx, double *vy)
{
	double to_y = *y + TIRE_STEP_S * *vy;
	double to_vy = (*vy + kick * fy) - fall;
	double stopped = to_vy > 0 ? to_vy : 0;

	*x = *x + TIRE_STEP_S * *vx;
	*vx = *vx + kick * fx;
	*vy = to_y <= floor_y ? stopped : to_vy;
	*y = to_y <= floor_y ? floor_y : to_y;
}

#endif
