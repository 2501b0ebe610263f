// SPDX-License-Identifier: MIT
/* The programs of injected_causes.py: injected_causes beside|within FOLDER CPU OTHER_CPU TURN_MS small|full
 * CAUSE...
 *
 * `within` is the program that is watched: a loop with a period, which may make itself late. `beside` makes
 * it late from outside. Several causes take turns for ever. At the end of a turn, and at SIGTERM, each
 * process writes FOLDER/told-PID-TURN, JSON with times in ns of CLOCK_MONOTONIC:
 *
 *   cause      the name of the cause
 *   told       [begin, end, before, after] of each injection; before and after: how much earlier it may have
 * begun and later have ended, as far as this program's clock tells ran        [begin, end] of each time in
 * which the watched program ran without a gap throttled  [begin, end, read, counted, awake] of each gap while
 * a quota may throttle: at `read`, the kernel had counted so much throttling in all; `awake` before a sleep's
 * end at `begin`, the program was still awake
 *
 * They are written at the end: to write each at once would keep the CPU for longer than is told. `small` is
 * for an emulated processor, which takes longer for a page, a timer or a file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define FREEZER "/sys/fs/cgroup/freezer/rtgauge-cause"
#define FREEZER_2 "/sys/fs/cgroup/unified/rtgauge-cause"
#define GROUP "/sys/fs/cgroup/cpu/rtgauge-cause"

enum { PROGRAM_PRIORITY = 40, HIGHER = 60, MIDDLE = 30, LOWER = 20, PAGE = 4096, MOST = 1 << 16 };
enum { TURN_PERIODS = 24 }; // a turn ends after a multiple of this number of periods
static const int64_t PERIOD_NS = 4000000, WORK_NS = 200000;
static const int64_t SECOND_PERIOD_NS =
	8000000; // its work is longer than any injection, so that none delays most of it
static const int64_t LEAST_GAP_NS = 20000; // between two readings of a program that was kept from computing
static const int64_t SETTLE_NS = 5000000;
static const int64_t BUSY_NS = 1300000000, REST_NS = 1200000000; // of a task that throttling stops
static const int FAIR_NICE = -3; // above the program next to it, but not so far that that one starves

struct injection {
	int64_t begin, end, before, after;
};
struct run {
	int64_t begin, end;
	long left; // how often the program had left its CPU before
};
struct gap {
	int64_t begin, end, read, counted, awake;
};

static struct injection told[MOST];
static struct run ran[MOST];
static struct gap throttled[MOST];
static int told_count, ran_count, throttled_count;
static bool is_victim, small;
static const char *folder;
static int cpu, other_cpu;
static const struct cause {
	const char *name;
	void (*beside)(void);
	void (*prepare)(void);
	void (*work)(int number);
	bool is_fair, waits;
} * cause; // whose turn it is
static int turn;
static int quota_file;
static pid_t started[4];
static int started_count;
static int64_t slept_until; // when the last sleep of this program was to end

static void fail(const char *what)
{
	fprintf(stderr, "injected_causes: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void rest_until(int64_t due)
{
	struct timespec time = {due / 1000000000, due % 1000000000};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

static void rest(int64_t ns)
{
	rest_until(now_ns() + ns);
}

/* Not at all if it is late. */
static void sleep_until(int64_t due)
{
	if (due > now_ns()) {
		slept_until = due;
		rest_until(due);
	}
}

static long switches(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static int64_t between(int64_t least, int64_t most)
{
	return least + (int64_t)(drand48() * (double)(most - least));
}

static int64_t size_ns(void)
{
	return between(600000, 1800000);
}

static void text_to(const char *path, const char *format, ...)
{
	char value[100];
	va_list words;
	va_start(words, format);
	int length = vsnprintf(value, sizeof value, format, words);
	va_end(words);
	int file = open(path, O_WRONLY | O_CLOEXEC);
	if (file < 0 || write(file, value, (size_t)length) != length)
		fail(path);
	close(file);
}

/* Name, SCHED_FIFO priority (0: fair) and CPU of this thread. */
static void become(const char *name, int priority, int on)
{
	prctl(PR_SET_NAME, name);
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(on, &set);
	struct sched_param parameters = {.sched_priority = priority};
	if (sched_setaffinity(0, sizeof set, &set) ||
	    sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &parameters))
		fail(name);
}

static void note(int64_t begin, int64_t end, int64_t before, int64_t after)
{
	if (told_count < MOST)
		told[told_count++] = (struct injection){begin, end, before, after};
}

static void note_run(int64_t begin, int64_t end, long left)
{
	if (ran_count < MOST)
		ran[ran_count++] = (struct run){begin, end, left};
}

/* Works for so long, and notes each time in which it ran. Returns when it began. */
static int64_t compute(int64_t ns)
{
	long left = switches();
	int64_t begin = now_ns(), start = begin, end = begin;
	while (end - begin < ns) {
		int64_t time = now_ns();
		if (time - end > LEAST_GAP_NS) {
			note_run(start, end, left);
			start = time;
			left = switches();
		}
		end = time;
	}
	note_run(start, end, left);
	return begin;
}

/* One injection, in the pieces in which this program had the CPU, which it leaves now. Without a switch the
 * machine stood still in the gap between two of them, or an interrupt came: the CPU was this program's. */
static void note_computed(int64_t due, int64_t begin)
{
	int64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID), end = now_ns();
	rest(SETTLE_NS);
	used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
	int count = ran_count;
	ran_count = 0;
	for (int piece = 0; piece < count; piece++) {
		const struct run *this = &ran[piece], *next = &ran[piece + 1];
		int64_t before = this->begin == begin ? begin - due : 0;
		if (piece == count - 1)
			note(this->begin, end, before, used);
		else
			note(this->begin, this->end, before,
			     this->left == next->left ? next->begin - this->end : 0);
	}
}

/* Sleeps between two injections. Returns when the timer was due. */
static int64_t pause_between(void)
{
	int64_t due = now_ns() + between(30000000, 80000000);
	sleep_until(due);
	return due;
}

static int told_file;
static char text[1 << 16];
static size_t text_bytes;

static void add(const char *format, ...)
{
	va_list words;
	va_start(words, format);
	text_bytes += (size_t)vsnprintf(text + text_bytes, sizeof text - text_bytes, format, words);
	va_end(words);
	if (text_bytes < sizeof text - 200)
		return;
	if (write(told_file, text, text_bytes) < 0)
		_exit(1);
	text_bytes = 0;
}

/* Whether a signal may end this process now: not while it keeps another one stopped. */
static void let_end(bool may)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(may ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}

/* Writes all down and forgets it. */
static void tell(void)
{
	let_end(false);
	if (quota_file)
		text_to(GROUP "/cpu.cfs_quota_us", "-1"); // else this takes seconds
	char path[300], whole[300];
	snprintf(path, sizeof path, "%s/part-%d", folder, getpid());
	snprintf(whole, sizeof whole, "%s/told-%d-%d", folder, getpid(), turn);
	told_file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	add("{\"cause\": \"%s\", \"told\": [", cause->name);
	for (int i = 0; i < told_count; i++)
		add("%s[%ld, %ld, %ld, %ld]", i ? ", " : "", told[i].begin, told[i].end, told[i].before,
		    told[i].after);
	add("], \"ran\": [");
	for (int i = 0; is_victim && i < ran_count; i++)
		add("%s[%ld, %ld]", i ? ", " : "", ran[i].begin, ran[i].end);
	add("], \"throttled\": [");
	for (int i = 0; i < throttled_count; i++)
		add("%s[%ld, %ld, %ld, %ld, %ld]", i ? ", " : "", throttled[i].begin, throttled[i].end,
		    throttled[i].read, throttled[i].counted, throttled[i].awake);
	add("]}");
	if (write(told_file, text, text_bytes) < 0 || rename(path, whole))
		_exit(1);
	close(told_file);
	text_bytes = 0;
	told_count = ran_count = throttled_count = 0;
	let_end(true);
}

static void tell_and_end(int number)
{
	(void)number;
	tell();
	_exit(0);
}

/* Runs this in a process of its own, which ends with its parent. */
static pid_t start_process(void (*run)(void))
{
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		is_victim = false;
		told_count = ran_count = throttled_count = 0;
		srand48(getpid());
		run();
		_exit(0);
	}
	if (started_count < (int)COUNT(started))
		started[started_count++] = child;
	return child;
}

/* Ends what this process started. */
static void end_started(void)
{
	for (int i = 0; i < started_count; i++) {
		kill(started[i], SIGTERM);
		waitpid(started[i], NULL, 0);
	}
	started_count = 0;
}

/* The program's number, as soon as it runs, when the first period of its turn began, and the number of the
 * turn. */
static pid_t victim_in(int64_t *first, int *its_turn)
{
	char path[300];
	snprintf(path, sizeof path, "%s/victim", folder);
	FILE *file;
	while (!(file = fopen(path, "r")))
		rest(10000000);
	int pid = 0;
	if (fscanf(file, "%d %ld %d", &pid, first, its_turn) != 3)
		fail(path);
	fclose(file);
	return pid;
}

static pid_t victim(int64_t *first)
{
	int64_t begun;
	int its_turn;
	return victim_in(first ? first : &begun, &its_turn);
}

/* When the program is in the middle of its work, some periods from now. */
static int64_t next_work(int64_t first)
{
	return first + ((now_ns() - first) / PERIOD_NS + 5) * PERIOD_NS + WORK_NS / 2;
}

static void compute_sometimes(const char *name, int priority, int on)
{
	become(name, priority, on);
	for (;;) {
		int64_t due = pause_between();
		note_computed(due, compute(size_ns()));
	}
}

static void allow_files(void)
{
	struct rlimit limit = {60000, 60000};
	if (setrlimit(RLIMIT_NOFILE, &limit))
		fail("files");
}

static unsigned char *map_pages(int pages, int flags)
{
	unsigned char *memory =
		mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
	if (memory == MAP_FAILED)
		fail("memory");
	return memory;
}

static void touch(unsigned char *memory, int pages, unsigned char byte)
{
	for (int page = 0; page < pages; page++)
		*(volatile unsigned char *)(memory + (size_t)page * PAGE) = byte;
}

/* -- other tasks have the CPU
 * ------------------------------------------------------------------------------------- */

static void hog(void)
{
	compute_sometimes("cause-hog", HIGHER, cpu);
}

static void other_hog(void)
{
	become("cause-other", HIGHER, other_cpu);
	for (;;) {
		pause_between();
		compute(size_ns());
		ran_count = 0;
	}
}

static void two_hogs(void)
{
	start_process(other_hog);
	hog();
}

static void same_priority(void)
{
	compute_sometimes("cause-same", PROGRAM_PRIORITY, cpu);
}

/* Another loop of the program always works for longer than --explain-above, so that its responses use up the
 * budget of latencies that are kept. */
static void second_loop(void)
{
	become("cause-second", LOWER, other_cpu);
	for (int64_t due = now_ns() + SECOND_PERIOD_NS;; due += SECOND_PERIOD_NS) {
		sleep_until(due);
		compute(SECOND_PERIOD_NS / 2);
		ran_count = 0;
	}
}

static void start_second_loop(void)
{
	start_process(second_loop);
}

/* Computes until then, and notes when it ran: gaps are those in which it left its CPU. */
static void note_runs(int64_t gap, int64_t until)
{
	int64_t start = now_ns(), last = start;
	long before = switches(), after;
	while (last < until) {
		int64_t time = now_ns();
		if (time - last > gap && (after = switches()) != before) {
			note(start, last, 0, 0);
			start = time;
			before = after;
		}
		last = time;
	}
}

/* This program is in a group of its own, as if it were alone on a CPU: other fair ones get next to nothing.
 */
static void join_group(pid_t pid)
{
	mkdir(GROUP, 0700);
	if (!small)
		text_to(GROUP "/cpu.shares", "262144"); // in a guest, no other fair program runs
	text_to(GROUP "/cgroup.procs", "%d", pid);
}

static void busy(void)
{
	become("cause-busy", 0, cpu);
	setpriority(PRIO_PROCESS, 0, FAIR_NICE);
	join_group(victim(NULL));
	join_group(getpid());
	note_runs(LEAST_GAP_NS, INT64_MAX);
}

static void moved(void)
{
	pid_t pid = victim(NULL);
	become("cause-hog", HIGHER, other_cpu);
	cpu_set_t there, back;
	CPU_ZERO(&there);
	CPU_SET(other_cpu, &there);
	CPU_ZERO(&back);
	CPU_SET(cpu, &back);
	for (;;) {
		int64_t due = pause_between();
		if (sched_setaffinity(pid, sizeof there, &there))
			fail("move");
		note_computed(due, compute(size_ns()));
		rest(10000000);
		sched_setaffinity(pid, sizeof back, &back);
	}
}

/* -- the kernel has it
 * -------------------------------------------------------------------------------------------- */

static void system_call(void)
{
	enum { FILES = 15000 };
	static struct pollfd files[FILES];
	allow_files();
	int ends[2];
	if (pipe(ends))
		fail("pipe");
	for (int i = 0; i < FILES; i++)
		files[i] = (struct pollfd){.fd = ends[0], .events = POLLIN};
	become("cause-call", 0, cpu);
	for (;;) {
		pause_between();
		int64_t begin = now_ns();
		poll(files, small ? FILES / 5 : FILES, 0);
		note(begin, now_ns(), 0, 0);
	}
}

static void softirq(void)
{
	allow_files();
	struct sockaddr_in all = {.sin_family = AF_INET, .sin_port = htons(53991)};
	all.sin_addr.s_addr = htonl(0x7fffffff);
	int on = 1, least = 1, sender = socket(AF_INET, SOCK_DGRAM, 0);
	setsockopt(sender, SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
	for (int i = 0; i < (small ? 1000 : 2000); i++) {
		int receiver = socket(AF_INET, SOCK_DGRAM, 0);
		setsockopt(receiver, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		setsockopt(receiver, SOL_SOCKET, SO_RCVBUF, &least,
			   sizeof least); // no packet fits, so none has to be read
		if (bind(receiver, (struct sockaddr *)&all, sizeof all))
			fail("bind");
	}
	for (;;) {
		become("cause-packets", LOWER, cpu);
		pause_between();
		become("cause-packets", HIGHER, cpu);
		int64_t begin = now_ns();
		sendto(sender, "x", 1, 0, (struct sockaddr *)&all, sizeof all);
		note(begin, now_ns(), 0, 0);
	}
}

/* Many timers are due at the same instant: the kernel serves them in one interrupt, which the program sees as
 * a gap. */
static void timers(void)
{
	enum { TIMERS = 6000 };
	static int files[TIMERS];
	int count = small ? TIMERS / 6 : TIMERS;
	allow_files();
	for (int i = 0; i < count; i++)
		if ((files[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)) < 0)
			fail("timerfd");
	int64_t first;
	victim(&first);
	become("cause-timers", LOWER, cpu);
	for (;;) {
		pause_between();
		int64_t due = next_work(first);
		struct itimerspec when = {.it_value = {due / 1000000000, due % 1000000000}};
		for (int i = 0; i < count; i++)
			timerfd_settime(files[i], TFD_TIMER_ABSTIME, &when, NULL);
		sleep_until(due + 2000000);
		note(due, due + 2000000, 0, 0);
	}
}

static void low(void)
{
	become("cause-low", LOWER, cpu);
	for (;;) {
		compute(BUSY_NS);
		ran_count = 0;
		rest(REST_NS); // else nobody can watch on a machine with one CPU
	}
}

/* A real-time task of a lower priority keeps the CPU for seconds: the scheduler gives some of it to a fair
 * task, which sees when it runs. */
static void throttling(void)
{
	victim(NULL);
	start_process(low);
	become("cause-busy", 0, cpu);
	note_runs(10000000, INT64_MAX);
}

/* -- the program is kept from running
 * ----------------------------------------------------------------------------- */

static void stopped(void)
{
	pid_t pid = victim(NULL);
	become("cause-stopper", 0, other_cpu);
	for (;;) {
		let_end(true);
		pause_between();
		let_end(false);
		int64_t begin = now_ns();
		kill(pid, SIGSTOP);
		rest(size_ns());
		kill(pid, SIGCONT);
		note(begin, now_ns(), 0, 0);
	}
}

static void debugger(void)
{
	pid_t pid = victim(NULL);
	become("cause-debugger", 0, other_cpu);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		fail("ptrace");
	for (;;) {
		pause_between();
		int64_t begin = now_ns();
		ptrace(PTRACE_INTERRUPT, pid, 0, 0);
		waitpid(pid, NULL, __WALL);
		rest(size_ns());
		ptrace(PTRACE_CONT, pid, 0, 0);
		note(begin, now_ns(), 0, 0);
	}
}

/* Its cgroup is frozen while it works: one that sleeps is frozen asleep, and nothing wakes it late. */
static void freeze(const char *group, const char *file, const char *stop, const char *go)
{
	int64_t first;
	pid_t pid = victim(&first);
	become("cause-freezer", HIGHER, other_cpu);
	mkdir(group, 0700);
	char path[100];
	snprintf(path, sizeof path, "%s/cgroup.procs", group);
	text_to(path, "%d", pid);
	snprintf(path, sizeof path, "%s/%s", group, file);
	int state = open(path, O_WRONLY | O_CLOEXEC);
	if (state < 0)
		fail(path);
	for (;;) {
		let_end(true);
		pause_between();
		sleep_until(next_work(first));
		let_end(false);
		int64_t begin = now_ns();
		if (write(state, stop, strlen(stop)) < 0)
			fail(path);
		rest(size_ns());
		if (write(state, go, strlen(go)) < 0)
			fail(path);
		note(begin, now_ns(), 0, 0);
	}
}

static void frozen(void)
{
	freeze(FREEZER, "freezer.state", "FROZEN", "THAWED");
}

static void frozen_2(void)
{
	freeze(FREEZER_2, "cgroup.freeze", "1", "0");
}

static int64_t quota_last, counted_before;

static int64_t counted_ns(void)
{
	char counters[1000];
	ssize_t length = pread(quota_file, counters, sizeof counters - 1, 0);
	if (length <= 0)
		fail("cpu.stat");
	counters[length] = 0;
	return strtoll(strstr(counters, "throttled_time ") + strlen("throttled_time "), NULL, 10);
}

static void prepare_quota(void)
{
	prctl(PR_SET_TIMERSLACK, 1);
	join_group(getpid());
	text_to(GROUP "/cpu.cfs_period_us", "30000");
	text_to(GROUP "/cpu.cfs_quota_us", "3000");
	quota_file = open(GROUP "/cpu.stat", O_RDONLY | O_CLOEXEC);
	counted_before = counted_ns();
	quota_last = now_ns();
}

/* Every gap of its own clock is noted with what the kernel has counted. */
static void quota(int number)
{
	int64_t awake = 0;
	if (quota_last < slept_until) {
		awake = slept_until - quota_last;
		quota_last = slept_until;
	}
	int64_t end = now_ns() + (number % 20 ? WORK_NS : 6000000);
	while (quota_last < end) {
		int64_t time = now_ns();
		if (time - quota_last > (small ? 3 : 1) * LEAST_GAP_NS && throttled_count < MOST) {
			int64_t counted = counted_ns() - counted_before;
			throttled[throttled_count++] =
				(struct gap){quota_last, time, now_ns(), counted, awake};
		}
		awake = 0;
		quota_last = time;
	}
}

/* -- it waits for another task
 * ------------------------------------------------------------------------------------ */

static int ends[2];
static pthread_mutex_t *mutex;

static void prepare_mutex(int protocol)
{
	mutex = (pthread_mutex_t *)map_pages(1, MAP_SHARED);
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setprotocol(&attributes, protocol);
	pthread_mutex_init(mutex, &attributes);
}

static void say(void)
{
	if (write(ends[1], "x", 1) != 1)
		fail("pipe");
}

static void hear(void)
{
	char byte;
	if (read(ends[0], &byte, 1) != 1)
		fail("pipe");
}

static void produce(void)
{
	become("cause-producer", LOWER, cpu);
	for (int64_t due = now_ns() + PERIOD_NS;; due += PERIOD_NS) {
		sleep_until(due);
		say();
	}
}

static void middle_hog(void)
{
	compute_sometimes("cause-hog", MIDDLE, cpu);
}

static void start_producer(void)
{
	if (pipe(ends))
		fail("pipe");
	start_process(produce);
	start_process(middle_hog);
}

static void wait_for_producer(int number)
{
	(void)number;
	hear();
	compute(WORK_NS);
}

static void work_with_lock(int number)
{
	(void)number;
	pthread_mutex_lock(mutex);
	compute(WORK_NS);
	pthread_mutex_unlock(mutex);
}

/* A task of a lower priority, on another CPU if there is one, holds the program's lock while it computes. */
static void own_lock(void)
{
	become("cause-owner", LOWER, other_cpu);
	for (;;) {
		pause_between();
		pthread_mutex_lock(mutex);
		int64_t begin = compute(size_ns() + 1000000);
		pthread_mutex_unlock(mutex);
		note(begin, now_ns(), 0, 0);
		ran_count = 0;
	}
}

static void start_owner(void)
{
	prepare_mutex(PTHREAD_PRIO_NONE);
	start_process(own_lock);
}

static void start_inheriting_owner(void)
{
	prepare_mutex(PTHREAD_PRIO_INHERIT);
	start_process(own_lock);
}

static int data_file(void)
{
	char path[300];
	snprintf(path, sizeof path, "%s/data", folder);
	int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0)
		fail(path);
	return file;
}

static void write_data(int file)
{
	static char data[100000];
	if (pwrite(file, data, sizeof data, 0) != sizeof data)
		fail("write");
}

/* The lock's owner writes to a disk with the lock. */
static void own_lock_in_disk(void)
{
	int file = data_file();
	become("cause-owner", LOWER, other_cpu);
	for (;;) {
		pause_between();
		write_data(file);
		pthread_mutex_lock(mutex);
		int64_t begin = now_ns();
		fdatasync(file);
		int64_t end = now_ns();
		pthread_mutex_unlock(mutex);
		note(begin, end, 0, 0);
	}
}

static void start_owner_in_disk(void)
{
	prepare_mutex(PTHREAD_PRIO_NONE);
	start_process(own_lock_in_disk);
}

static void own_lock_below(void)
{
	become("cause-owner", LOWER, cpu);
	for (;;) {
		pause_between();
		pthread_mutex_lock(mutex);
		say();
		compute(50000);
		pthread_mutex_unlock(mutex);
		ran_count = 0;
	}
}

static void preempt_owner(void)
{
	become("cause-third", MIDDLE, cpu);
	for (;;) {
		hear();
		int64_t begin = compute(size_ns() + 3000000);
		note_computed(begin, begin);
	}
}

static void start_inversion(void)
{
	prepare_mutex(PTHREAD_PRIO_NONE);
	if (pipe(ends))
		fail("pipe");
	start_process(own_lock_below);
	start_process(preempt_owner);
}

enum { MAPPED = 8192 };
static unsigned char *mapped;
static volatile bool changes_mapping;

/* Another thread changes a large mapping, for which the program's own mmap waits. */
static void *change_mapping(void *unused)
{
	(void)unused;
	become("cause-mapping", LOWER, other_cpu);
	for (int number = 0;; number++) {
		int64_t due = pause_between(), begin = now_ns();
		if (!changes_mapping)
			continue;
		mprotect(mapped, (size_t)(small ? MAPPED / 4 : MAPPED) * PAGE,
			 number % 2 ? PROT_READ | PROT_WRITE : PROT_READ);
		note(begin, now_ns(), begin - due, 0);
	}
	return NULL;
}

static void start_mapping(void)
{
	changes_mapping = true;
	if (mapped)
		return;
	mapped = map_pages(MAPPED, MAP_PRIVATE);
	touch(mapped, MAPPED, 1);
	pthread_t thread;
	if (pthread_create(&thread, NULL, change_mapping, NULL))
		fail("thread");
}

static void map_one(int number)
{
	(void)number;
	munmap(map_pages(1, MAP_PRIVATE), PAGE);
}

/* -- it is its own doing
 * ------------------------------------------------------------------------------------------ */

static unsigned char *pages;
static int page_count, data = -1;

static void prepare_pages(int count)
{
	if (pages)
		munmap(pages, (size_t)page_count * PAGE);
	page_count = count;
	pages = map_pages(page_count, MAP_PRIVATE);
}

static void prepare_faults(void)
{
	prepare_pages(small ? 300 : 2000);
}

static void faults(int number)
{
	compute(WORK_NS);
	if (number % 12 == 0) {
		int64_t begin = now_ns();
		touch(pages, page_count, 1);
		note(begin, now_ns(), 0, 0);
		compute(50000);
	} else if (number % 12 == 6) {
		madvise(pages, (size_t)page_count * PAGE, MADV_DONTNEED);
	}
}

static void prepare_copies(void)
{
	prepare_pages(small ? 200 : 1000);
	touch(pages, page_count, 1);
}

static void sleep_for_ever(void)
{
	struct sched_param fair = {0};
	sched_setscheduler(0, SCHED_OTHER, &fair);
	signal(SIGTERM, SIG_DFL);
	pause();
}

static void copies(int number)
{
	static pid_t child;
	if (number % TURN_PERIODS == 0) {
		child = start_process(sleep_for_ever);
		started_count--; // it is ended here
	} else if (number % TURN_PERIODS == 8) {
		int64_t begin = now_ns();
		touch(pages, page_count, 2);
		note(begin, now_ns(), 0, 0);
		compute(50000);
	} else if (number % TURN_PERIODS == 16) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}

static void prepare_faults_and_work(void)
{
	prepare_pages(50);
}

/* It works for longer than the page faults between which it works take. */
static void faults_and_work(int number)
{
	if (number % 12 == 0) {
		int64_t begin = now_ns();
		for (int page = 0; page < page_count; page++) {
			touch(pages + (size_t)page * PAGE, 1, 1);
			for (int64_t end = now_ns() + (small ? 64000 : 16000); now_ns() < end;)
				;
		}
		note(begin, now_ns(), 0, 0);
	} else if (number % 12 == 6) {
		madvise(pages, (size_t)page_count * PAGE, MADV_DONTNEED);
	}
}

static void disk(int number)
{
	if (data < 0)
		data = data_file();
	compute(WORK_NS);
	if (number % 12 == 0) {
		write_data(data);
		int64_t begin = now_ns();
		fdatasync(data);
		note(begin, now_ns(), 0, 0);
	}
}

/* It computes for more than its period, and catches up. */
static void own_work(int number)
{
	int64_t begin = compute(number % 12 ? WORK_NS : PERIOD_NS + size_ns());
	note(begin, ran[ran_count - 1].end, begin - slept_until, 0);
}

static void plain_work(int number)
{
	(void)number;
	compute(WORK_NS);
}

static const struct cause causes[] = {
	{"task of a higher priority", .beside = hog},
	{"the same, and one on another CPU", .beside = two_hogs},
	{"hog while another loop uses up the budget", .beside = hog, .prepare = start_second_loop},
	{"task of the same priority", .beside = same_priority},
	{"fair program next to a busy task", .beside = busy, .is_fair = true},
	{"moved to a busy CPU", .beside = moved},
	{"long system call of a lower task", .beside = system_call},
	{"network softirq", .beside = softirq},
	{"many timers at once", .beside = timers},
	{"real-time throttling", .beside = throttling},
	{"SIGSTOP", .beside = stopped},
	{"debugger", .beside = debugger},
	{"frozen cgroup", .beside = frozen},
	{"frozen cgroup, version 2", .beside = frozen_2},
	{"CPU quota of its cgroup", .prepare = prepare_quota, .work = quota, .is_fair = true},
	{"starved producer", .prepare = start_producer, .work = wait_for_producer, .waits = true},
	{"held lock", .prepare = start_owner, .work = work_with_lock},
	{"lock with inheritance, owner on another CPU", .prepare = start_inheriting_owner,
	 .work = work_with_lock},
	{"lock whose owner is in fdatasync", .prepare = start_owner_in_disk, .work = work_with_lock},
	{"priority inversion, third task", .prepare = start_inversion, .work = work_with_lock},
	{"another thread's mprotect", .prepare = start_mapping, .work = map_one},
	{"page faults", .prepare = prepare_faults, .work = faults},
	{"copies on write", .prepare = prepare_copies, .work = copies},
	{"own work between page faults", .prepare = prepare_faults_and_work, .work = faults_and_work},
	{"fdatasync", .work = disk},
	{"its own long work", .work = own_work},
	{"hog next to the program's children", .beside = hog},
};
static const struct cause *chosen[COUNT(causes)];
static int chosen_count;

/* The program that is watched: a loop with a period, which computes for a while. */
static void run_victim(int64_t turn_ns)
{
	memset(ran, 0, sizeof ran); // no page fault later
	memset(told, 0, sizeof told);
	for (turn = 0;; turn++) {
		cause = chosen[turn % chosen_count];
		void (*work)(int) = cause->work ? cause->work : plain_work;
		is_victim = false;
		if (cause->prepare)
			cause->prepare();
		become("victim", cause->is_fair ? 0 : PROGRAM_PRIORITY, cpu);
		is_victim = true;
		told_count = ran_count = 0;
		int64_t due = now_ns() + PERIOD_NS, end = due + turn_ns;
		char path[300], first[300];
		snprintf(path, sizeof path, "%s/victim", folder);
		snprintf(first, sizeof first, "%s/first", folder);
		FILE *file = fopen(first, "w");
		if (!file)
			fail(first);
		fprintf(file, "%d %ld %d\n", getpid(), due, turn);
		fclose(file);
		if (rename(first, path))
			fail(path);
		for (int number = 0; chosen_count == 1 || number % TURN_PERIODS || due < end;
		     number++, due += PERIOD_NS) {
			if (!cause->waits)
				sleep_until(due);
			work(number);
		}
		changes_mapping = false;
		end_started();
		tell();
	}
}

/* Makes the program late from outside, in the turns of the program. */
static void run_beside(void)
{
	for (turn = -1;;) {
		int64_t first;
		int its_turn;
		victim_in(&first, &its_turn);
		if (its_turn != turn) {
			end_started();
			turn = its_turn;
			cause = chosen[turn % chosen_count];
			if (cause->beside)
				start_process(cause->beside);
		}
		rest(20000000);
	}
}

int main(int count, char **words)
{
	if (count < 8)
		return 2;
	folder = words[2];
	cpu = atoi(words[3]);
	other_cpu = atoi(words[4]);
	small = strcmp(words[6], "small") == 0;
	for (int word = 7; word < count; word++)
		for (size_t i = 0; i < COUNT(causes); i++)
			if (strcmp(causes[i].name, words[word]) == 0)
				chosen[chosen_count++] = &causes[i];
	if (chosen_count != count - 7) {
		fprintf(stderr, "injected_causes: unknown cause\n");
		return 2;
	}
	cause = chosen[0];
	srand48(getpid());
	signal(SIGTERM, tell_and_end);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); // no huge pages, and khugepaged leaves the memory map alone
	alarm(1200);
	if (strcmp(words[1], "within") == 0)
		run_victim(atoll(words[5]) * 1000000);
	else if (chosen_count > 1)
		run_beside();
	else if (cause->beside)
		cause->beside();
	return 0;
}
