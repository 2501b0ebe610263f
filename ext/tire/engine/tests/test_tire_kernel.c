// SPDX-License-Identifier: MIT
/* The loops for every kind of processor, and the force and the move in them. */
#include <string.h>

#include "ext/tire/engine/kernel.h"
#include "tests/check.h"
#include "tests/cm.h"

#define COUNT 603 /* more than two blocks, and not a multiple of any vector */

static double numbers[2][TIRE_ARCS][4][COUNT + 2];
static struct tire_forces forces;

static struct tire_model model(void)
{
	struct tire_model m = {.nodes = 4000,
			       .mass = 10,
			       .radius = 0.3,
			       .height = 0.1,
			       .gravity = 9.81,
			       .floor = true,
			       .springs = true,
			       .integration = true};

	tire_model_settle(&m);
	return m;
}

static void fill(double (*to)[4][COUNT + 2])
{
	uint64_t state = 4711;

	for (int a = 0; a < TIRE_ARCS; a++) {
		for (int c = 0; c < 4; c++) {
			for (int i = 0; i < COUNT + 2; i++)
				to[a][c][i] = (double)(int64_t)next_random(&state) / 1e19;
		}
	}
}

static void run(const struct tire_kernel *kernel, int64_t count, double (*at)[4][COUNT + 2])
{
	struct tire_arc arcs[TIRE_ARCS];
	const struct tire_model m = model();

	for (int a = 0; a < TIRE_ARCS; a++)
		arcs[a] = (struct tire_arc){at[a][0], at[a][1], at[a][2], at[a][3]};
	fill(at);
	memset(&forces, 0, sizeof(forces));
	for (int step = 0; step < 3; step++)
		tire_kernel_step(kernel, &m, count, arcs, &forces);
}

static void every_kind_gives_the_same_bits(void **state)
{
	static const int64_t counts[] = {1, 2, 3, 4, 7, 255, 256, 257, 511, 512, 513, COUNT};

	(void)state;
	assert_non_null(tire_kernel(0));
	for (unsigned int nth = 1; tire_kernel(nth); nth++) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			run(tire_kernel(0), counts[i], numbers[0]);
			run(tire_kernel(nth), counts[i], numbers[1]);
			assert_memory_equal(numbers[0], numbers[1], sizeof(numbers[0]));
		}
	}
}

static void ghosts_and_what_lies_beyond_are_left_alone(void **state)
{
	(void)state;
	fill(numbers[1]);
	run(tire_kernel(0), 100, numbers[0]);
	for (int a = 0; a < TIRE_ARCS; a++) {
		for (int c = 0; c < 4; c++) {
			assert_memory_equal(&numbers[0][a][c][0], &numbers[1][a][c][0], sizeof(double));
			assert_memory_equal(&numbers[0][a][c][101], &numbers[1][a][c][101],
					    (COUNT + 2 - 101) * sizeof(double));
			assert_true(numbers[0][a][c][100] != numbers[1][a][c][100]);
		}
	}
}

static void a_spring_at_rest_pulls_nothing_and_one_of_no_length_is_no_disaster(void **state)
{
	double fx, fy;

	(void)state;
	tire_spring(3, 0.5, 3 * 5, 3, 4, 0, 0, &fx, &fy);
	assert_true(fx == 0 && fy == 0);
	tire_spring(3, 0.5, 3 * 5, 6, 8, 0, 0, &fx, &fy);
	assert_true(fx == 9 && fy == 12);
	tire_spring(3, 0.5, 3 * 5, 3, 4, 2, -4, &fx, &fy);
	assert_true(fx == 1 && fy == -2);
	tire_spring(3, 0.5, 3 * 5, 0, 0, 0, 0, &fx, &fy);
	assert_true(fx == 0 && fy == 0);
}

static void the_floor_stops_what_falls_and_lets_go_what_rises(void **state)
{
	double x = 1, y = 0.01, vx = 2, vy = -3;

	(void)state;
	tire_move(0.5, 0.0981, 0, 0, 0, &x, &y, &vx, &vy);
	assert_true(y == 0 && vy == 0 && vx == 2 && x == 1 + TIRE_STEP_S * 2);
	y = 0, vy = 3;
	tire_move(0.5, 0, 0, 4, 6, &x, &y, &vx, &vy);
	assert_true(y == TIRE_STEP_S * 3 && vy == 6 && vx == 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_gives_the_same_bits),
		cmocka_unit_test(ghosts_and_what_lies_beyond_are_left_alone),
		cmocka_unit_test(a_spring_at_rest_pulls_nothing_and_one_of_no_length_is_no_disaster),
		cmocka_unit_test(the_floor_stops_what_falls_and_lets_go_what_rises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
