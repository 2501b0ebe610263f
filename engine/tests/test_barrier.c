// SPDX-License-Identifier: MIT
/* A barrier: no thread continues before all have arrived, one does the common work once, and repeatedly. */
#include <pthread.h>
#include <stdbool.h>

#include "rt/barrier.h"
#include "tests/cm.h"

#define MEETINGS 1000
#define THREADS_MAX 5

static struct barrier barrier;
/* Plain numbers: the barrier alone orders who writes and who reads them. */
static int seen[THREADS_MAX], sum, meetings;
static unsigned int thread_count;
static _Atomic int wrong;

static void once(void *arg)
{
	(void)arg;
	sum = 0;
	for (unsigned int i = 0; i < thread_count; i++)
		sum += seen[i];
	meetings++;
}

static void *run(void *arg)
{
	int *mine = arg;

	for (int i = 1; i <= MEETINGS; i++) {
		*mine = i;
		barrier_pass(&barrier, once, NULL);
		if (sum != i * (int)thread_count || meetings != i)
			atomic_fetch_add(&wrong, 1);
	}
	return NULL;
}

static void meet(unsigned int threads, unsigned int cpus)
{
	pthread_t others[THREADS_MAX];

	thread_count = threads;
	meetings = 0;
	barrier_init(&barrier, threads, cpus);
	for (unsigned int i = 1; i < threads; i++)
		assert_int_equal(pthread_create(&others[i], NULL, run, &seen[i]), 0);
	run(&seen[0]);
	for (unsigned int i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	assert_int_equal(wrong, 0);
	assert_int_equal(meetings, MEETINGS);
}

static void one_thread_does_not_wait(void **state)
{
	(void)state;
	meet(1, 1);
}

static void threads_that_spin_meet(void **state)
{
	(void)state;
	meet(2, 2);
	meet(5, 5);
}

static void threads_that_sleep_meet(void **state)
{
	(void)state;
	meet(2, 1);
	meet(5, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_does_not_wait),
		cmocka_unit_test(threads_that_spin_meet),
		cmocka_unit_test(threads_that_sleep_meet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
