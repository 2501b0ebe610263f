// SPDX-License-Identifier: MIT
#include "harness/measuring_thread.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/commands.h"
#include "base/cpuset.h"
#include "base/error.h"
#include "harness/measuring_options.h"
#include "harness/refusal.h"
#include "rt/runtime.h"

#define READY_NS (5 * NS_PER_S)
#define STACK 24576 /* locked in memory for every measured CPU; the deepest calls use a quarter of it */

struct harness_shared harness_shared;

static _Atomic unsigned int measuring; /* threads that have not ended */

static void *run(void *arg)
{
	struct harness_thread *t = arg;
	struct cpuset own;

	commands_leave_to_main();
	cpuset_clear(&own);
	cpuset_add(&own, (unsigned int)t->cpu);
	t->tid = gettid();
	t->error = t->free ? 0 : cpuset_pin(0, &own);
	if (!t->error) {
		t->error = t->policy == POLICY_DEADLINE ? deadline_set(0, &t->deadline)
							: policy_set(t->policy, t->priority);
		t->policy_refused = t->error != 0;
	}
	if (!t->error)
		t->error = runtime_thread_begin();
	if (!t->error && t->prepare)
		t->error = t->prepare(t);
	t->schedstat = usage_open();
	usage_read(t->schedstat, &t->before); /* so that the first activation that counts is quick */
	pthread_getcpuclockid(pthread_self(), &t->cpu_clock);
	atomic_store(&t->ready, true);
	while (sem_wait(&harness_shared.gate))
		;
	if (!t->error && !atomic_load(&harness_shared.stop))
		t->measure(t);
	runtime_thread_end();
	t->moved = t->usage_known && !t->free && sched_getcpu() != t->cpu;
	atomic_store(&t->done, true);
	if (atomic_fetch_sub(&measuring, 1) == 1)
		commands_wake();
	return NULL;
}

/* If a thread is not ready in this time, a task of higher priority holds its CPU. */
static bool wait_ready(const struct harness_thread *t)
{
	int64_t give_up_ns = clock_now_ns(CLOCK_MONOTONIC) + READY_NS;

	while (!atomic_load(&t->ready)) {
		if (clock_now_ns(CLOCK_MONOTONIC) > give_up_ns)
			return false;
		clock_pause_ns(NS_PER_S / 1000);
	}
	return true;
}

void harness_thread_on(struct harness_thread *t, int cpu)
{
	t->cpu = cpu;
	t->policy = (enum policy)harness_options.policy;
	t->priority = (int)harness_options.priority;
}

int harness_thread_start(struct harness_thread *t)
{
	pthread_attr_t attr;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN + STACK);
	atomic_fetch_add(&measuring, 1);
	error = pthread_create(&t->thread, &attr, run, t);
	pthread_attr_destroy(&attr);
	if (error && harness_memory_limited())
		return harness_no_memory();
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "cannot start the thread for CPU %d: %s",
				  t->cpu, strerror(error));
	if (!wait_ready(t))
		return refuse_held_cpu(t->cpu, "its measuring thread", "other CPUs with --cpu");
	if (t->policy_refused && t->policy == POLICY_DEADLINE)
		return refuse_deadline(t->error, &t->deadline, t->free ? -1 : t->cpu);
	if (t->error == ENOMEM && RUNTIME_IS_COKERNEL)
		return error_line(
			STATUS_CANNOT_MEASURE, "internal",
			"%s has run out of memory, or of names for tasks, locks and semaphores (RTAI has "
			"256 by default): measure with fewer nodes or threads",
			RUNTIME_NAME);
	if (t->error)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "cannot measure CPU %d: %s", t->cpu,
				  strerror(t->error));
	return 0;
}

void harness_threads_stop(struct harness_thread *const *threads, unsigned int count)
{
	atomic_store(&harness_shared.stop, true);
	for (unsigned int i = 0; i < count; i++) {
		if (!atomic_load(&threads[i]->done))
			runtime_interrupt(threads[i]->thread);
	}
}
