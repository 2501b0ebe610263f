// SPDX-License-Identifier: MIT
/* RTAI's co-kernel through LXRT. Its scheduler takes over threads from Linux. */
#include "rt/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <rtai_lxrt.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "rt/lacking.h"
#include "rt/rtai/lxrt.h"

#define STATE "/proc/rtai/scheduler"
#define TASKS 256 /* RTAI's default */
#define LOWEST 99 /* among the priorities in use; 0 is RTAI's highest */

static const char *const probes[] = {"wakeup",	  "periodic", "switch", "preempt", "semaphore",
				     "inversion", "taskset",  "tire",	NULL};

/* What RTAI lacks, among the options of its probes. Any other choice works. */
static const struct lacking lacking[] = {
	{NULL, "policy", "rr", NULL},
	{NULL, "policy", "other", NULL},
	{NULL, "policy", "deadline", NULL},
	{NULL, "explain-instance", NULL, "--explain"},
	{"wakeup", "space", "kernel", NULL},
	{"periodic", "space", "user", NULL},
	{"periodic", "context", "irq", NULL},
	{NULL, "timer", "timerfd", NULL},
	{"semaphore", "method", "mutex", NULL},
	{"semaphore", "method", "condition", NULL},
	{"semaphore", "method", "eventfd", NULL},
	{"semaphore", "method", "pipe", NULL},
	{"semaphore", "method", "mqueue", NULL},
	{"semaphore", "method", "signal", NULL},
	{"inversion", "lock", "ceiling-mutex", NULL},
	{"inversion", "lock", "futex", NULL},
	{NULL, NULL, NULL, NULL},
};

_Thread_local bool lxrt_hard;
static _Thread_local RT_TASK *own;

/* The tasks of measuring threads, needed to end their sleeps. */
static struct {
	pthread_t thread;
	RT_TASK *_Atomic task;
} tasks[TASKS];
static _Atomic unsigned int task_count;

static int64_t forced_before;

/* Returns the sum of the numbers after these words in RTAI's state; -1: it cannot be read. */
static int64_t state_sum(const char *const *words)
{
	static char text[65536];
	size_t length = 0;
	ssize_t got = 0;
	int64_t sum = 0;
	int file = open(STATE, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return -1;
	while (length < sizeof(text) - 1 && (got = read(file, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)got;
	close(file);
	text[length] = '\0';
	for (; *words; words++) {
		const char *at = strstr(text, *words);
		long long number;

		if (!at || sscanf(at + strlen(*words), "%lld", &number) != 1)
			return -1;
		sum += number;
	}
	return sum;
}

static int64_t forced_transitions(void)
{
	static const char *const words[] = {"transitions: traps", ", syscalls", NULL};

	return state_sum(words);
}

RT_TASK *lxrt_own_task(void)
{
	int policy;
	struct sched_param param;

	if (own)
		return own;
	policy = sched_getscheduler(0);
	sched_getparam(0, &param);
	/* It sets the policy again, with a Linux priority that it computes from RTAI's. */
	own = rt_task_init_schmod(0, LOWEST - (policy == SCHED_OTHER ? 0 : param.sched_priority), 0, 0,
				  policy, 1 << sched_getcpu());
	return own;
}

int runtime_begin(const struct verb *verb)
{
	int error = lacking_probe("RTAI", probes, verb);
	static const char *const frequency[] = {"Time Base Frequency:", NULL};
	int64_t hz;

	if (error)
		return error;
	hz = state_sum(frequency);
	if (hz <= 0)
		return error_line(STATUS_CANNOT_MEASURE, "runtime",
				  "the RTAI scheduler is not loaded (there is no " STATE
				  "): load its modules rtai_hal and rtai_sched, or leave --rt out");
	if (geteuid())
		return error_line(STATUS_CANNOT_MEASURE, "permission",
				  "RTAI accepts only threads of root; measure as root");
	lxrt_clock_begin(hz);
	atexit(lxrt_delete_semaphores);
	return 0;
}

int runtime_join(void)
{
	return 0;
}

int runtime_check(const char *verb, const struct option_entry *table)
{
	return lacking_choice("RTAI", lacking, verb, table);
}

int runtime_thread_begin(void)
{
	unsigned int place;

	if (!lxrt_own_task())
		return ENOMEM;
	place = atomic_fetch_add(&task_count, 1);
	if (place < TASKS) {
		tasks[place].thread = pthread_self();
		atomic_store(&tasks[place].task, own);
	}
	rt_make_hard_real_time();
	lxrt_hard = rt_is_hard_real_time(own) > 0;
	return lxrt_hard ? 0 : EPERM;
}

void runtime_thread_end(void)
{
	if (!own)
		return;
	for (unsigned int i = 0; i < TASKS; i++) {
		if (atomic_load(&tasks[i].task) == own)
			atomic_store(&tasks[i].task, NULL);
	}
	lxrt_hard = false;
	rt_task_delete(own);
	own = NULL;
}

/* A task of RTAI stays on the CPU on which it was made. If its thread calls RTAI from another CPU, RTAI's
 * list of sleeping tasks there breaks, and the machine hangs. So the next call makes a new task. */
void runtime_thread_moves(void)
{
	runtime_thread_end();
}

/* RTAI ends the sleep, because a signal would move the thread to Linux. */
void runtime_interrupt(pthread_t thread)
{
	lxrt_own_task();
	for (unsigned int i = 0; i < TASKS; i++) {
		RT_TASK *task = atomic_load(&tasks[i].task);

		if (task && pthread_equal(tasks[i].thread, thread))
			rt_task_wakeup_sleeping(task);
	}
}

const char *runtime_switch_cause(void)
{
	return NULL;
}

void runtime_go(void)
{
	forced_before = forced_transitions();
}

int64_t runtime_switches_of_all(void)
{
	int64_t forced = forced_transitions();

	return forced < 0 || forced_before < 0 ? -1 : forced - forced_before;
}

int64_t runtime_linux_clock_ns(clockid_t clock)
{
	return clock_now_ns(clock);
}
