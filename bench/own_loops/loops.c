// SPDX-License-Identifier: MIT
/*
 * Loops as people write them in C, one for each way to wait. Each keeps its own account (cycle_log.h), which
 * bench/own_loops.py compares with what `rtgauge watch` says.
 */
#define _GNU_SOURCE
#include "cycle_log.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/types.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#define SENSOR_NS 300000

static void sleep_until(int64_t ns)
{
	struct timespec t = timespec_of(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void sleep_for(int64_t ns)
{
	struct timespec t = timespec_of(ns);

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* Starts another thread of this program, with the ordinary policy. */
static void start_helper(void *(*function)(void *), void *argument)
{
	pthread_t thread;
	pthread_attr_t attributes;
	struct sched_param param = {0};

	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
	pthread_attr_setschedparam(&attributes, &param);
	if (pthread_create(&thread, &attributes, function, argument))
		exit(1);
}

/* What the loops on a grid do within their cycles. */
static void (*in_cycle)(void) = work;

static void loop_absolute(void)
{
	for (int64_t due_ns = now() + options.period_ns;; due_ns += options.period_ns) {
		sleep_until(due_ns);
		begins(due_ns, RUN);
		in_cycle();
		ends();
	}
}

static void loop_relative(void)
{
	for (;;) {
		int64_t due_ns = now() + options.period_ns;

		sleep_for(options.period_ns);
		begins(due_ns, RUN);
		work();
		ends();
	}
}

/* It sleeps only if time is left. */
static void loop_rate(void)
{
	for (int64_t due_ns = now() + options.period_ns;; due_ns += options.period_ns) {
		bool late = now() >= due_ns;

		if (!late)
			sleep_until(due_ns);
		begins(due_ns, late ? CAUGHT_UP : RUN);
		work();
		ends();
	}
}

/* It leaves out the points that have passed. */
static void loop_skip(void)
{
	for (int64_t due_ns = now() + options.period_ns;; due_ns += options.period_ns) {
		for (; now() >= due_ns; due_ns += options.period_ns)
			skips(due_ns);
		sleep_until(due_ns);
		begins(due_ns, RUN);
		work();
		ends();
	}
}

/* Sleeps for the rest of the time to its grid, which begins anew when it is late, as in JACK's dummy driver.
 */
static void loop_anchor(void)
{
	int64_t anchor_ns = now(), count = 0;

	for (;;) {
		int64_t now_ns = now(), due_ns;

		if (count++ == 0)
			anchor_ns = now_ns;
		due_ns = anchor_ns + count * options.period_ns;
		if (due_ns < now_ns) {
			due_ns = now_ns;
			count = 0;
		}
		sleep_for(due_ns - now_ns);
		begins(due_ns, RUN);
		work();
		ends();
	}
}

/* Always sleeps for at least a tenth of its period. If it was late, its next timers are behind its grid. */
static void loop_rest(void)
{
	for (int64_t due_ns = now() + options.period_ns;; due_ns += options.period_ns) {
		int64_t least_ns = now() + options.period_ns / 10;

		if (due_ns < least_ns)
			due_ns = least_ns;
		sleep_until(due_ns);
		begins(due_ns, RUN);
		work();
		ends();
	}
}

static struct itimerspec interval(void)
{
	struct itimerspec t = {timespec_of(options.period_ns), timespec_of(options.period_ns)};

	return t;
}

/* One cycle for so many expirations, of which the first is `*due_ns`. */
static void cycle_of(int64_t *due_ns, int64_t expirations)
{
	begins(*due_ns, RUN);
	work();
	ends();
	for (int64_t i = 1; i < expirations; i++)
		skips(*due_ns + i * options.period_ns);
	*due_ns += expirations * options.period_ns;
}

static int start_timerfd(int64_t *due_ns)
{
	int file = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec t = interval();

	*due_ns = now() + options.period_ns;
	t.it_value = timespec_of(*due_ns);
	if (file < 0 || timerfd_settime(file, TFD_TIMER_ABSTIME, &t, NULL))
		exit(1);
	return file;
}

static void loop_timerfd(void)
{
	uint64_t expirations;
	int64_t due_ns;
	int file = start_timerfd(&due_ns);

	while (read(file, &expirations, sizeof(expirations)) == sizeof(expirations))
		cycle_of(&due_ns, (int64_t)expirations);
}

static void loop_epoll(void)
{
	uint64_t expirations;
	int64_t due_ns;
	int file = start_timerfd(&due_ns), poll_file = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN};

	epoll_ctl(poll_file, EPOLL_CTL_ADD, file, &event);
	while (epoll_wait(poll_file, &event, 1, -1) == 1 &&
	       read(file, &expirations, sizeof(expirations)) == sizeof(expirations))
		cycle_of(&due_ns, (int64_t)expirations);
}

static void loop_posix_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	struct itimerspec t = interval();
	int64_t due_ns = now() + options.period_ns;
	siginfo_t info;
	timer_t timer;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	t.it_value = timespec_of(due_ns);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, TIMER_ABSTIME, &t, NULL))
		exit(1);
	while (sigwaitinfo(&set, &info) == SIGRTMIN)
		cycle_of(&due_ns, 1 + info.si_overrun);
}

static void ignore(int number)
{
	(void)number;
}

/* The number of expirations is not known, since signals merge: it is computed from the time. */
static void loop_setitimer(void)
{
	struct timeval period = {options.period_ns / NS_PER_S, options.period_ns % NS_PER_S / 1000};
	struct itimerval t = {period, period};
	int64_t due_ns;
	sigset_t set, none;

	signal(SIGALRM, ignore);
	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	due_ns = now() + options.period_ns;
	setitimer(ITIMER_REAL, &t, NULL);
	for (;;) {
		sigsuspend(&none);
		int64_t passed = (now() - due_ns) / options.period_ns;

		cycle_of(&due_ns, 1 + (passed > 0 ? passed : 0));
	}
}

static void wait_on_condition(clockid_t clock)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_condattr_t attributes;
	pthread_cond_t condition;
	int64_t offset_ns = now_on(clock) - now();

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, clock);
	pthread_cond_init(&condition, &attributes);
	pthread_mutex_lock(&mutex);
	for (int64_t due_ns = now() + options.period_ns;; due_ns += options.period_ns) {
		struct timespec t = timespec_of(due_ns + (clock == CLOCK_MONOTONIC ? 0 : offset_ns));

		while (pthread_cond_timedwait(&condition, &mutex, &t) != ETIMEDOUT)
			;
		begins(due_ns, RUN);
		work();
		ends();
	}
}

static void loop_condition(void)
{
	wait_on_condition(CLOCK_MONOTONIC);
}

static void loop_condition_wall_clock(void)
{
	wait_on_condition(CLOCK_REALTIME);
}

/* The kernel's timer wheel wakes it, whose time the program does not know. */
static void loop_receive(void)
{
	struct timeval t = {options.period_ns / NS_PER_S, options.period_ns % NS_PER_S / 1000};
	int pair[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		exit(1);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	while (recv(pair[0], &byte, 1, 0) < 0) {
		begins(0, DATA);
		work();
		ends();
	}
}

struct deadline_attributes {
	__u32 size, policy;
	__u64 flags;
	__s32 nice;
	__u32 priority;
	__u64 runtime, deadline, period;
};

/* The kernel sets the points of its grid, which the program does not know. */
static void loop_deadline(void)
{
	struct deadline_attributes attributes = {
		.size = sizeof(attributes),
		.policy = 6,
		.runtime = (__u64)options.period_ns / 2,
		.deadline = (__u64)options.period_ns,
		.period = (__u64)options.period_ns,
	};

	if (syscall(SYS_sched_setattr, 0, &attributes, 0)) {
		perror("SCHED_DEADLINE");
		exit(1);
	}
	for (;;) {
		sched_yield();
		begins(0, RUN);
		work();
		ends();
	}
}

static void loop_poller(void)
{
	for (int64_t due_ns = now() + options.period_ns;; due_ns += options.period_ns) {
		while (now() < due_ns)
			;
		begins(due_ns, RUN);
		work();
		ends();
	}
}

/* The second sleep is within the cycle. */
static void loop_two_sleeps(void)
{
	for (int64_t due_ns = now() + options.period_ns;; due_ns += options.period_ns) {
		sleep_until(due_ns);
		begins(due_ns, RUN);
		work();
		sleep_until(due_ns + options.period_ns * 2 / 5);
		busy(options.work_ns / 2);
		ends();
	}
}

/* The second sleep is after each fourth cycle, for a release of its own. */
static void loop_two_periods(void)
{
	int64_t cycle = 0;

	for (int64_t due_ns = now() + options.period_ns;; due_ns += options.period_ns) {
		sleep_until(due_ns);
		begins(due_ns, RUN);
		work();
		ends();
		if (cycle++ % 4 == 0)
			sleep_until(due_ns + options.period_ns * 2 / 5);
	}
}

/* Two timers in one thread, as in a single-threaded executor. Its log is that of the faster timer. */
static void loop_executor(void)
{
	int64_t fast_ns = now() + options.period_ns, slow_ns = fast_ns + options.period_ns / 3;
	pthread_condattr_t attributes;
	pthread_cond_t condition;
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&condition, &attributes);
	pthread_mutex_lock(&mutex);
	for (;;) {
		bool fast = fast_ns <= slow_ns;
		struct timespec t = timespec_of(fast ? fast_ns : slow_ns);

		while (pthread_cond_timedwait(&condition, &mutex, &t) != ETIMEDOUT)
			;
		if (fast)
			begins(fast_ns, RUN);
		work();
		if (fast)
			ends();
		*(fast ? &fast_ns : &slow_ns) += fast ? options.period_ns : options.period_ns * 5;
	}
}

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;

/* It holds the lock for 3 ms of each 50 ms, and is asleep most of that time. */
static void *hold_the_lock(void *unused)
{
	prctl(PR_SET_NAME, "holder");
	for (;;) {
		pthread_mutex_lock(&shared);
		sleep_for(3000000);
		pthread_mutex_unlock(&shared);
		sleep_for(47000000);
	}
	return unused;
}

static void work_with_lock(void)
{
	work();
	pthread_mutex_lock(&shared);
	busy(2000);
	pthread_mutex_unlock(&shared);
}

static void share_a_lock(int protocol)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, protocol);
	pthread_mutex_init(&shared, &attributes);
	in_cycle = work_with_lock;
	start_helper(hold_the_lock, NULL);
	loop_absolute();
}

static void loop_lock(void)
{
	share_a_lock(PTHREAD_PRIO_NONE);
}

static void loop_lock_inheriting(void)
{
	share_a_lock(PTHREAD_PRIO_INHERIT);
}

static int disk_file;

static void work_with_disk(void)
{
	static int64_t done;
	char data[4096] = {0};

	work();
	if (++done % 50 == 0 && (pwrite(disk_file, data, sizeof(data), 0) < 0 || fdatasync(disk_file)))
		exit(1);
}

/* Each 50th cycle writes to the disk. */
static void loop_disk(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.data", options.log);
	disk_file = open(path, O_CREAT | O_WRONLY, 0600);
	in_cycle = work_with_disk;
	loop_absolute();
}

static int request[2], answer[2];

static void *be_the_sensor(void *unused)
{
	char byte;

	prctl(PR_SET_NAME, "sensor");
	prctl(PR_SET_TIMERSLACK, 1);
	while (read(request[0], &byte, 1) == 1) {
		sleep_for(SENSOR_NS);
		if (write(answer[1], &byte, 1) != 1)
			break;
	}
	return unused;
}

static void work_with_sensor(void)
{
	char byte = 0;

	if (write(request[1], &byte, 1) != 1 || read(answer[0], &byte, 1) != 1)
		exit(1);
	work();
}

static void loop_sensor(void)
{
	if (pipe(request) || pipe(answer))
		exit(1);
	in_cycle = work_with_sensor;
	start_helper(be_the_sensor, NULL);
	loop_absolute();
}

static int sink;

/* Calls that cannot wait, and calls that can, which `watch` records. */
static void make_calls(void)
{
	work();
	for (int64_t i = 0; i < options.calls; i++) {
		if (i % 2 ? write(sink, &i, sizeof(i)) < 0 : getppid() < 0)
			exit(1);
	}
}

static void loop_calls(void)
{
	sink = open("/dev/null", O_WRONLY);
	in_cycle = make_calls;
	loop_absolute();
}

/* A signal each 10 ms, whose handler works for 20 us. */
static void handle(int number)
{
	(void)number;
	busy(20000);
}

static void loop_signals(void)
{
	struct sigaction action = {.sa_handler = handle};
	struct itimerval t = {{0, 10007}, {0, 10007}};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
	loop_absolute();
}

/* Another process stops it for a little more than three periods, each half second. */
static void loop_stopped(void)
{
	pid_t program = getpid();

	if (!fork()) {
		struct sched_param param = {0};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "stopper");
		sched_setscheduler(0, SCHED_OTHER, &param);
		for (;;) {
			sleep_for(500000000);
			if (kill(program, SIGSTOP))
				_exit(0);
			sleep_for(options.period_ns * 31 / 10);
			kill(program, SIGCONT);
		}
	}
	loop_absolute();
}

/* io_uring_enter waits with a time-out, relative to its call. */
static void loop_io_uring(void)
{
	struct io_uring_params params = {0};
	int ring = (int)syscall(SYS_io_uring_setup, 4, &params);

	if (ring < 0 || !(params.features & IORING_FEAT_EXT_ARG)) {
		perror("io_uring");
		exit(1);
	}
	for (;;) {
		struct timespec t = timespec_of(options.period_ns);
		struct io_uring_getevents_arg argument = {.ts = (uint64_t)(uintptr_t)&t};
		int64_t due_ns = now() + options.period_ns;

		syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
			&argument, sizeof(argument));
		begins(due_ns, RUN);
		work();
		ends();
	}
}

/* A device, as another process that sends at irregular times; it sends when. */
static void loop_data(void)
{
	int64_t sent_ns;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		exit(1);
	if (!fork()) {
		struct sched_param param = {.sched_priority = 1};
		unsigned int random = 1;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "device");
		sched_setscheduler(0, options.priority ? SCHED_FIFO : SCHED_OTHER,
				   options.priority ? &param : &(struct sched_param){0});
		for (;;) {
			random = random * 1103515245 + 12345;
			sleep_for(options.period_ns / 2 + (int64_t)(random >> 8) % options.period_ns);
			sent_ns = now();
			if (send(pair[1], &sent_ns, sizeof(sent_ns), 0) < 0)
				_exit(0);
		}
	}
	while (recv(pair[0], &sent_ns, sizeof(sent_ns), 0) == sizeof(sent_ns)) {
		bool queued = cycle_count && cycles[cycle_count - 1].end_ns > sent_ns;

		begins(sent_ns, queued ? CAUGHT_UP : DATA);
		work();
		ends();
	}
}

static sem_t turns[2];
static int64_t turn_due_ns;

/* Runs a few cycles, and gives way to the other thread. */
static void *take_turns(void *which)
{
	intptr_t own = (intptr_t)which;
	unsigned int random = 1;

	prctl(PR_SET_NAME, own ? "second" : "first");
	be_real_time();
	for (;;) {
		sem_wait(&turns[own]);
		random = random * 1103515245 + 12345;
		for (unsigned int i = 0; i <= (random >> 16) % 3; i++) {
			sleep_until(turn_due_ns);
			begins(turn_due_ns, RUN);
			work();
			ends();
			turn_due_ns += options.period_ns;
		}
		sem_post(&turns[1 - own]);
	}
	return which;
}

/* Two threads share one cycle, as those of a pool do. */
static void loop_turns(void)
{
	turn_due_ns = now() + options.period_ns;
	sem_init(&turns[0], 0, 1);
	sem_init(&turns[1], 0, 0);
	start_helper(take_turns, (void *)1);
	take_turns(NULL);
}

static int64_t churn_due_ns;

static void *live_for_one_cycle(void *unused)
{
	prctl(PR_SET_NAME, "cycle");
	begins(churn_due_ns, RUN);
	work();
	ends();
	return unused;
}

/* Each cycle is a new thread. */
static void loop_churn(void)
{
	prctl(PR_SET_NAME, "churn");
	for (churn_due_ns = now() + options.period_ns;; churn_due_ns += options.period_ns) {
		pthread_t thread;

		sleep_until(churn_due_ns);
		if (!pthread_create(&thread, NULL, live_for_one_cycle, NULL))
			pthread_join(thread, NULL);
	}
}

static int64_t until_trouble_ns;

static void hang_later(void)
{
	sem_t never;

	work();
	if (now() < until_trouble_ns)
		return;
	sem_init(&never, 0, 0);
	while (sem_wait(&never))
		;
}

static void loop_hang(void)
{
	in_cycle = hang_later;
	loop_absolute();
}

static void end_later(void)
{
	work();
	if (now() < until_trouble_ns)
		return;
	ends();
	pthread_exit(NULL);
}

static void *loop_until_it_ends(void *unused)
{
	prctl(PR_SET_NAME, options.kind);
	be_real_time();
	loop_absolute();
	return unused;
}

/* The thread ends while its program goes on. */
static void loop_ends(void)
{
	in_cycle = end_later;
	start_helper(loop_until_it_ends, NULL);
	prctl(PR_SET_NAME, "main");
	for (;;)
		pause();
}

static const struct {
	const char *kind;
	void (*run)(void);
} kinds[] = {
	{"absolute", loop_absolute},
	{"relative", loop_relative},
	{"anchor", loop_anchor},
	{"rest", loop_rest},
	{"rate", loop_rate},
	{"skip", loop_skip},
	{"timerfd", loop_timerfd},
	{"epoll", loop_epoll},
	{"posix-timer", loop_posix_timer},
	{"setitimer", loop_setitimer},
	{"condition", loop_condition},
	{"condition-wall", loop_condition_wall_clock},
	{"receive", loop_receive},
	{"deadline", loop_deadline},
	{"poller", loop_poller},
	{"two-sleeps", loop_two_sleeps},
	{"two-periods", loop_two_periods},
	{"executor", loop_executor},
	{"lock", loop_lock},
	{"lock-inheriting", loop_lock_inheriting},
	{"disk", loop_disk},
	{"sensor", loop_sensor},
	{"calls", loop_calls},
	{"signals", loop_signals},
	{"stopped", loop_stopped},
	{"io-uring", loop_io_uring},
	{"data", loop_data},
	{"turns", loop_turns},
	{"churn", loop_churn},
	{"hang", loop_hang},
	{"ends", loop_ends},
};

int main(int argc, char **argv)
{
	read_options(argc, argv);
	prctl(PR_SET_NAME, options.kind);
	until_trouble_ns = now() + options.trouble_ns;
	if (strcmp(options.kind, "ends") && strcmp(options.kind, "deadline"))
		be_real_time();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].kind, options.kind))
			continue;
		puts("ready");
		fflush(stdout);
		kinds[i].run();
	}
	fprintf(stderr, "the loop %s ended\n", options.kind);
	return 1;
}
