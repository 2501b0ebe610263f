// SPDX-License-Identifier: MIT
#include "ext/tire/engine/model.h"

#define HALF_PI 1.57079632679489661923
#define NOWHERE (-1e300) /* a floor that no node reaches */

/*
 * Sine and cosine of 0 ... pi/2 by their series. The C library's functions would add 40 KB to a static
 * program, and their bits depend on the machine.
 */
static void sine_cosine(double angle, double *sine, double *cosine)
{
	bool upper = angle > HALF_PI / 2;
	double a = upper ? HALF_PI - angle : angle;
	double s = a, c = 1, term = a;

	/* Both series' terms, alternately. 20 are more than a double can resolve. */
	for (int n = 2; n < 20; n++) {
		term *= a / n;
		if (n & 1)
			s += n & 2 ? -term : term;
		else
			c += n & 2 ? -term : term;
	}
	*sine = upper ? c : s;
	*cosine = upper ? s : c;
}

/* Returns the largest eigenvalue of the graph's Laplacian, which belongs to the odd mode next to the
   alternating one. */
static double largest_eigenvalue(int64_t nodes)
{
	double sine, cosine;

	sine_cosine(4 * HALF_PI / (double)nodes, &sine, &cosine);
	return 4 + 2 * cosine;
}

static double most_damping(const struct tire_model *m)
{
	return 2 * m->mass / ((double)m->nodes * TIRE_STEP_S * largest_eigenvalue(m->nodes));
}

bool tire_model_stable(const struct tire_model *m, double *least, double *most)
{
	*least = m->stiffness * TIRE_STEP_S;
	*most = most_damping(m);
	return m->damping >= *least && m->damping <= *most;
}

void tire_model_settle(struct tire_model *m)
{
	double node_mass = m->mass / (double)m->nodes, sine, cosine;

	if (m->damping == 0) {
		m->damping = most_damping(m) / 2;
		if (m->damping < m->stiffness * TIRE_STEP_S)
			m->damping = m->stiffness * TIRE_STEP_S;
	}
	if (m->stiffness == 0)
		m->stiffness = m->damping / (2 * TIRE_STEP_S);
	sine_cosine(2 * HALF_PI / (double)m->nodes, &sine, &cosine);
	m->side_force = m->stiffness * (2 * m->radius * sine);
	m->spoke_force = m->stiffness * (2 * m->radius);
	m->kick = TIRE_STEP_S / node_mass;
	m->fall = TIRE_STEP_S * m->gravity;
	m->floor_y = m->floor ? 0 : NOWHERE;
}

/* Counter-clockwise from the right. Each quadrant is the first one, turned, so that opposite nodes match
 * exactly. */
struct tire_state tire_model_start(const struct tire_model *m, int64_t i)
{
	int64_t quadrant = m->nodes / 4;
	double right, up, sine, cosine;

	sine_cosine(HALF_PI * (double)(i % quadrant) / (double)quadrant, &sine, &cosine);
	switch (i / quadrant) {
	case 0:
		right = cosine, up = sine;
		break;
	case 1:
		right = -sine, up = cosine;
		break;
	case 2:
		right = -cosine, up = -sine;
		break;
	default:
		right = sine, up = -cosine;
	}
	/* It rolls to the right, so its lowest point rests for a moment. A zero with the other sign would
	 * survive only in some solvers. */
	return (struct tire_state){
		.x = m->radius * right + 0.0,
		.y = (m->height + m->radius) + m->radius * up,
		.vx = m->speed * (1 + up) + 0.0,
		.vy = -m->speed * right + 0.0,
	};
}
