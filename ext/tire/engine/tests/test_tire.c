// SPDX-License-Identifier: MIT
/* The model and its solvers on threads that meet: all compute the same. */
#include <pthread.h>
#include <string.h>

#include "ext/tire/engine/solver.h"
#include "ext/tire/engine/threads.h"
#include "rt/barrier.h"
#include "tests/cm.h"

/* Measuring code never frees memory, and here many tires are made. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

#define STEPS 60
#define NODES_MAX 600
#define THREADS_MAX 4

static struct tire_model model;
static struct barrier barrier;
static const struct tire_solver *solver;
static void *tire;
static struct tire_state expected[NODES_MAX], found[NODES_MAX];

static void nothing(void *arg)
{
	(void)arg;
}

static void *run(void *arg)
{
	unsigned int thread = *(const unsigned int *)arg;

	solver->reset(tire, thread);
	barrier_pass(&barrier, nothing, NULL);
	for (int i = 0; i < STEPS; i++) {
		solver->step(tire, thread);
		barrier_pass(&barrier, nothing, NULL);
	}
	return NULL;
}

static void simulate(const struct tire_solver *with, unsigned int threads, struct tire_state *states)
{
	static unsigned int numbers[THREADS_MAX] = {0, 1, 2, 3};
	pthread_t others[THREADS_MAX];

	solver = with;
	barrier_init(&barrier, threads, 1);
	tire = solver->make(&model, threads);
	assert_non_null(tire);
	for (unsigned int i = 1; i < threads; i++)
		assert_int_equal(pthread_create(&others[i], NULL, run, &numbers[i]), 0);
	run(&numbers[0]);
	for (unsigned int i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	for (int64_t i = 0; i < model.nodes; i++)
		states[i] = solver->state(tire, i);
}

static void set_model(int64_t nodes)
{
	model = (struct tire_model){.nodes = nodes,
				    .mass = 10,
				    .radius = 0.3,
				    .height = 0.05,
				    .gravity = 9.81,
				    .speed = 1,
				    .floor = true,
				    .springs = true,
				    .integration = true};
	tire_model_settle(&model);
}

static void solvers_and_threads_agree(void **state)
{
	static const struct tire_solver *const others[] = {&tire_semaphore, &tire_halo};

	(void)state;
	for (int64_t nodes = 4; nodes <= NODES_MAX; nodes += nodes < 16 ? 4 : 292) {
		set_model(nodes);
		simulate(&tire_serial, 1, expected);
		for (int s = 0; s < 2; s++) {
			for (unsigned int threads = 1; threads <= THREADS_MAX && threads <= nodes / 2;
			     threads++) {
				simulate(others[s], threads, found);
				assert_memory_equal(found, expected, (size_t)nodes * sizeof(*found));
			}
		}
	}
}

static void threads_that_run_freely_do_not_race(void **state)
{
	(void)state;
	set_model(400);
	simulate(&tire_free_running, 3, found);
	for (int i = 0; i < 400; i++)
		assert_true(found[i].y >= 0 && found[i].y < 10);
}

static void defaults_lie_within_the_bound(void **state)
{
	double least, most;

	(void)state;
	for (int64_t nodes = 4; nodes <= TIRE_NODES_MAX; nodes *= 2) {
		set_model(nodes);
		assert_true(tire_model_stable(&model, &least, &most));
		assert_true(model.damping == most / 2 && model.stiffness > 0);
		model.damping = most * 1.0001;
		assert_false(tire_model_stable(&model, &least, &most));
		set_model(nodes);
		model.stiffness = model.damping / TIRE_STEP_S * 1.0001;
		assert_false(tire_model_stable(&model, &least, &most));
	}
}

static void what_is_opposite_is_so_exactly(void **state)
{
	(void)state;
	for (int64_t nodes = 4; nodes < 2000; nodes += 36) {
		set_model(nodes);
		model.height = -model.radius; /* the circle around 0 */
		for (int64_t i = 0; i < nodes / 2; i++) {
			struct tire_state here = tire_model_start(&model, i);
			struct tire_state there = tire_model_start(&model, i + nodes / 2);

			assert_true(here.x == -there.x && here.y == -there.y);
			assert_true(fabs(here.x * here.x + here.y * here.y - 0.09) < 1e-16);
		}
	}
}

static void threads_by_number_and_by_meaning(void **state)
{
	struct cpuset cpus = {0};
	unsigned int threads = 0;

	(void)state;
	/* CPUs that do not exist: each is a core of its own. */
	cpuset_add(&cpus, 8001);
	cpuset_add(&cpus, 8003);
	assert_true(tire_threads_read("17", &cpus, &threads) && threads == 17);
	assert_true(tire_threads_read("one", &cpus, &threads) && threads == 1);
	assert_true(tire_threads_read("cores", &cpus, &threads) && threads == 2);
	assert_true(tire_threads_read("hardware-threads", &cpus, &threads) && threads == 2);
	assert_true(tire_threads_read("twice", &cpus, &threads) && threads == 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(solvers_and_threads_agree),
		cmocka_unit_test(threads_that_run_freely_do_not_race),
		cmocka_unit_test(defaults_lie_within_the_bound),
		cmocka_unit_test(what_is_opposite_is_so_exactly),
		cmocka_unit_test(threads_by_number_and_by_meaning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
