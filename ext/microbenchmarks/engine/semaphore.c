// SPDX-License-Identifier: MIT
/*
 * semaphore: two tasks wake each other by turns. The probe measures the time from one task's post to the
 * other's return from wait (paper row G1; Garre et al. 2014, sec. 3.1, IPC), and the same for other
 * primitives on which programs wait. Each task stores the time of its return and posts at once, so that
 * one clock reading ends a hand-over and begins the next.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/container_of.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/usage.h"
#include "base/verbs.h"
#include "harness/burst.h"
#include "harness/cpus.h"
#include "harness/harness.h"
#include "rt/runtime.h"

#define WORK_NS (NS_PER_S / 50)
#define REST_NS (NS_PER_S / 50)
#define ROOM 16384

enum method {
	METHOD_SEMAPHORE,
	METHOD_MUTEX,
	METHOD_CONDITION,
	METHOD_EVENTFD,
	METHOD_PIPE,
	METHOD_MQUEUE,
	METHOD_SIGNAL,
};

static const char *const method_names[] = {"semaphore", "mutex",  "condition", "eventfd",
					   "pipe",	"mqueue", "signal",    NULL};

static int method, placement = PLACEMENT_SAME_CPU;

static const struct option_entry table[] = {
	{.shared = harness_option_cpu},
	{.name = "method",
	 .kind = OPTION_CHOICE,
	 .value = &method,
	 .choices = method_names,
	 .help = "how a task waits for the other task"},
	{.name = "placement",
	 .kind = OPTION_CHOICE,
	 .value = &placement,
	 .choices = placement_names,
	 .help = "where to run the second task"},
	{.shared = harness_option_count,
	 .help = "number of hand-overs in the measured phase, instead of a duration"},
	{.shared = harness_options_measuring},
	{0},
};

/* State that the two tasks share. [n] is what task n waits for, unless noted otherwise. */
struct means {
	sem_t semaphores[2];
	pthread_mutex_t mutexes[3];
	pthread_mutex_t turn_lock;
	pthread_cond_t turn_changed[2];
	unsigned int turn;
	int readable[2], writable[2];
	mqd_t queues[2];
	sigset_t wake_signal;
	pthread_t waiters[2];
};

struct state {
	_Alignas(CACHE_LINE) _Atomic bool over; /* the burst */
	/* not used within a burst */
	struct burst_task *tasks[2];
	struct series *series[1];
	int64_t hand_overs, slept; /* in all bursts */
	int64_t slept_in_round[2];

	_Alignas(CACHE_LINE) struct means means;
};

/* `post` wakes the other task, and `wait` waits for it. turn_number counts the hand-overs of the burst; 0
 * is the first, by task 0. Interrupted calls are repeated. */

static inline void semaphore_post(struct means *m, unsigned int other, size_t turn_number)
{
	(void)turn_number;
	sem_post(&m->semaphores[other]);
}

static inline void semaphore_wait(struct means *m, unsigned int own, size_t turn_number)
{
	(void)turn_number;
	while (sem_wait(&m->semaphores[own]))
		;
}

/*
 * Only its holder can release a mutex, so two tasks need three of them. At each turn the running task holds
 * two: it releases the one that the other waits for, and waits for the third, which the other holds.
 */
static inline void mutex_post(struct means *m, unsigned int other, size_t turn_number)
{
	(void)other;
	pthread_mutex_unlock(&m->mutexes[turn_number % 3]);
}

static inline void mutex_wait(struct means *m, unsigned int own, size_t turn_number)
{
	(void)own;
	pthread_mutex_lock(&m->mutexes[turn_number % 3]);
}

static inline void condition_post(struct means *m, unsigned int other, size_t turn_number)
{
	(void)turn_number;
	pthread_mutex_lock(&m->turn_lock);
	m->turn = other;
	pthread_cond_signal(&m->turn_changed[other]);
	pthread_mutex_unlock(&m->turn_lock);
}

static inline void condition_wait(struct means *m, unsigned int own, size_t turn_number)
{
	(void)turn_number;
	pthread_mutex_lock(&m->turn_lock);
	while (m->turn != own)
		pthread_cond_wait(&m->turn_changed[own], &m->turn_lock);
	pthread_mutex_unlock(&m->turn_lock);
}

/* For eventfd and pipe. One byte would be enough for a pipe; here it has eight, like eventfd. */
static inline void file_post(struct means *m, unsigned int other, size_t turn_number)
{
	const uint64_t one = 1;

	(void)turn_number;
	while (write(m->writable[other], &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static inline void file_wait(struct means *m, unsigned int own, size_t turn_number)
{
	uint64_t value;

	(void)turn_number;
	while (read(m->readable[own], &value, sizeof(value)) < 0 && errno == EINTR)
		;
}

static inline void mqueue_post(struct means *m, unsigned int other, size_t turn_number)
{
	(void)turn_number;
	while (mq_send(m->queues[other], "", 1, 0) && errno == EINTR)
		;
}

static inline void mqueue_wait(struct means *m, unsigned int own, size_t turn_number)
{
	char message[1];

	(void)turn_number;
	while (mq_receive(m->queues[own], message, sizeof(message), NULL) < 0 && errno == EINTR)
		;
}

static inline void signal_post(struct means *m, unsigned int other, size_t turn_number)
{
	(void)turn_number;
	pthread_kill(m->waiters[other], SIGRTMIN);
}

static inline void signal_wait(struct means *m, unsigned int own, size_t turn_number)
{
	(void)own;
	(void)turn_number;
	while (sigwaitinfo(&m->wake_signal, NULL) < 0)
		;
}

typedef void (*step)(struct means *m, unsigned int task, size_t turn_number);

/* The measured path: returns from wait, reads the clock, stores, posts. Task 0 decides when the burst is
   over. */
static inline __attribute__((always_inline)) void take_turns(struct burst_task *t, step post, step wait)
{
	struct state *state = t->burst->harness.state;
	struct means *means = &state->means;
	unsigned int own = t->number, other = 1 - own;
	int64_t limit_ns = t->burst->limit_ns;
	size_t count = 0;
	struct timespec now;

	burst_meet(t->burst);
	if (own == 1)
		wait(means, own, 0);
	for (;;) {
		size_t turn_number = 2 * count + own;

		clock_gettime(CLOCK_MONOTONIC, &now);
		if (atomic_load_explicit(&state->over, memory_order_relaxed))
			break;
		t->times[count++] = timespec_ns(&now);
		if (own == 0 && (count == t->room || t->times[count - 1] >= limit_ns)) {
			atomic_store(&state->over, true);
			post(means, other, turn_number);
			break;
		}
		post(means, other, turn_number);
		wait(means, own, turn_number + 1);
	}
	t->count = count;
}

/* Task 0 begins with the first and the third mutex, task 1 with the second. */
static void take_turns_by_mutex(struct burst_task *t)
{
	struct means *m = &((struct state *)t->burst->harness.state)->means;

	pthread_mutex_lock(&m->mutexes[t->number]);
	if (t->number == 0)
		pthread_mutex_lock(&m->mutexes[2]);
	take_turns(t, mutex_post, mutex_wait);
	if (t->number == 0) {
		/* The task has released the mutex of its last turn, and holds the one before it. */
		pthread_mutex_unlock(&m->mutexes[(2 * (t->count - 1) + 2) % 3]);
	} else {
		/* The task got the mutex of task 0's last turn, and holds the one after it. */
		pthread_mutex_unlock(&m->mutexes[2 * t->count % 3]);
		pthread_mutex_unlock(&m->mutexes[(2 * t->count + 1) % 3]);
	}
}

static void work_by_method(struct burst_task *t)
{
	switch ((enum method)method) {
	case METHOD_SEMAPHORE:
		take_turns(t, semaphore_post, semaphore_wait);
		break;
	case METHOD_MUTEX:
		take_turns_by_mutex(t);
		break;
	case METHOD_CONDITION:
		take_turns(t, condition_post, condition_wait);
		break;
	case METHOD_EVENTFD:
	case METHOD_PIPE:
		take_turns(t, file_post, file_wait);
		break;
	case METHOD_MQUEUE:
		take_turns(t, mqueue_post, mqueue_wait);
		break;
	case METHOD_SIGNAL:
		take_turns(t, signal_post, signal_wait);
		break;
	}
}

/* Reports, in addition to the times, how often the task slept, by the kernel's count. */
static void work(struct burst_task *t)
{
	struct state *state = t->burst->harness.state;
	struct usage before, after;

	usage_read(-1, &before);
	work_by_method(t);
	usage_read(-1, &after);
	state->slept_in_round[t->number] = after.voluntary_switches - before.voluntary_switches;
}

/* The task waits for the signal; no handler runs. */
static int block_signal(struct harness_thread *t)
{
	const struct state *state = container_of(t, struct burst_task, thread)->burst->harness.state;

	return pthread_sigmask(SIG_BLOCK, &state->means.wake_signal, NULL);
}

static int open_queue(struct means *m, unsigned int n)
{
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 1};
	char name[64];

	snprintf(name, sizeof(name), "/rtgauge-%d-%u", (int)getpid(), n);
	m->queues[n] = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr);
	if (m->queues[n] == (mqd_t)-1)
		return errno;
	mq_unlink(name); /* the queue lives as long as it is open */
	return 0;
}

/* Makes the object on which one task waits. Returns 0 or an errno. */
static int open_method(struct means *m, unsigned int n)
{
	int ends[2];

	pthread_cond_init(&m->turn_changed[n], NULL);
	switch ((enum method)method) {
	case METHOD_EVENTFD:
		m->readable[n] = m->writable[n] = eventfd(0, EFD_CLOEXEC);
		return m->readable[n] < 0 ? errno : 0;
	case METHOD_PIPE:
		if (pipe2(ends, O_CLOEXEC))
			return errno;
		m->readable[n] = ends[0];
		m->writable[n] = ends[1];
		return 0;
	case METHOD_MQUEUE:
		return open_queue(m, n);
	default:
		return sem_init(&m->semaphores[n], 0, 0) ? errno : 0;
	}
}

static void ready(struct burst *burst)
{
	struct state *state = burst->harness.state;

	atomic_store(&state->over, false);
	state->means.turn = 0;
	for (unsigned int i = 0; i < 2; i++)
		state->means.waiters[i] = burst->tasks[i]->thread.thread;
}

/* The two tasks' times alternate. A time's number says which task ended a hand-over; the clocks of the
 * CPUs may differ, so they do not decide. */
static bool drain(struct burst *burst, struct json *j)
{
	struct state *state = burst->harness.state;
	struct burst_task *const *tasks = state->tasks;

	state->hand_overs += (int64_t)(tasks[0]->count + tasks[1]->count) - 1;
	state->slept += state->slept_in_round[0] + state->slept_in_round[1];
	for (size_t i = 1; i < tasks[0]->count + tasks[1]->count; i++) {
		int64_t from_ns = tasks[(i - 1) % 2]->times[(i - 1) / 2];

		if (!burst_feed(state->series[0], from_ns, tasks[i % 2]->times[i / 2] - from_ns, j))
			return false;
	}
	return true;
}

/* On two CPUs the semaphore may be posted before the task sleeps: such a hand-over is short. */
static void conclude(struct harness *h, struct json *j)
{
	const struct state *state = h->state;
	int64_t hand_overs = state->hand_overs, slept = state->slept;

	stream_result(j, "hand-overs");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_int(j, "hand_overs", hand_overs);
	if (RUNTIME_COUNTS_SWITCHES)
		json_int(j, "slept", slept < hand_overs ? slept : hand_overs);
	else
		json_null(j, "slept");
	stream_result_end(j);
}

static int prepare_probe(struct burst *burst)
{
	struct state *state = burst->harness.state;
	struct means *means = &state->means;
	struct series *series = memory_get(sizeof(*series));
	int cpu[2];
	int status = placement_choose(burst->harness.cpus, (enum placement)placement, &cpu[0], &cpu[1]);

	if (status)
		return status;
	if (!series)
		return harness_no_memory();
	sigemptyset(&means->wake_signal);
	sigaddset(&means->wake_signal, SIGRTMIN);
	pthread_mutex_init(&means->turn_lock, NULL);
	for (unsigned int i = 0; i < 3; i++)
		pthread_mutex_init(&means->mutexes[i], NULL);
	for (unsigned int i = 0; i < 2; i++) {
		int error = open_method(means, i);

		if (error)
			return error_lacks(STATUS_CANNOT_MEASURE, "method", method_names[method],
					   "choose another --method", "this machine does not support %s (%s)",
					   method_names[method], strerror(error));
		state->tasks[i] = burst_task_new(cpu[i], ROOM, work);
		if (!state->tasks[i])
			return harness_no_memory();
		state->tasks[i]->thread.prepare = block_signal;
	}
	series->metric = "hand-over";
	series->cpu = cpu[0];
	series->labels[0] = (struct label){"method", method_names[method]};
	series->labels[1] = (struct label){"placement", placement_names[placement]};
	state->series[0] = series;
	burst->harness.series = state->series;
	burst->harness.series_count = 1;
	burst->tasks = state->tasks;
	return 0;
}

static struct burst burst = {
	.harness =
		{
			.table = table,
			.state_size = sizeof(struct state),
			.conclude = conclude,
		},
	.prepare = prepare_probe,
	.task_count = 2,
	.work_ns = WORK_NS,
	.pause_ns = REST_NS,
	.ready = ready,
	.drain = drain,
};

static int verb_semaphore(int argc, char **argv)
{
	return burst_run(&burst, argc, argv);
}

PROBE("semaphore", verb_semaphore, "time from when one task posts until the other returns from its wait")
