// SPDX-License-Identifier: MIT
/*
 * planted_rules NAME: a real-time loop of 1 kHz that breaks one rule in each 50th cycle. `planted_rules.py`
 * compiles and watches it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EVERY 50
#define AREA (1 << 16)
#define LARGE (64 << 20) /* malloc maps it each time */
#define FILE_NAME "planted_rules.data"

static const char *name;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t posted;
static int asked[2], answered[2], file;
static bool ready;
static char page[4096];
static char *area;

static bool is(const char *what)
{
	return !strcmp(name, what);
}

static void check(bool right)
{
	if (!right)
		abort();
}

static void sleep_us(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void *nothing(void *unused)
{
	return unused;
}

static void ask(void)
{
	check(write(asked[1], "", 1) == 1);
}

static void wait_for_answer(void)
{
	char byte;

	check(read(answered[0], &byte, 1) == 1);
}

/* An ordinary thread, which holds the lock, or answers after a while. */
static void *help(void *unused)
{
	char byte;

	while (is("mutex")) {
		pthread_mutex_lock(&lock);
		sleep_us(3000);
		pthread_mutex_unlock(&lock);
		sleep_us(1000);
	}
	while (read(asked[0], &byte, 1) == 1) {
		sleep_us(300);
		pthread_mutex_lock(&lock);
		ready = true;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&lock);
		sem_post(&posted);
		if (!is("condition") && !is("semaphore"))
			check(write(answered[1], &byte, 1) == 1);
	}
	return unused;
}

static void wait_for_condition(void)
{
	pthread_mutex_lock(&lock);
	ready = false;
	ask();
	while (!ready)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void wait_in_poll(void)
{
	struct pollfd awaited = {answered[0], POLLIN, 0};

	ask();
	poll(&awaited, 1, -1);
	wait_for_answer();
}

static void begin_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, nothing, NULL);
	pthread_join(thread, NULL);
}

static void begin_process(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
}

static void log_line(void)
{
	FILE *log = fopen(FILE_NAME ".log", "w");

	fputs("line\n", log);
	fclose(log);
}

static void break_rule(void)
{
	if (is("malloc")) {
		char *volatile memory = malloc(LARGE);

		free(memory);
	} else if (is("mmap"))
		munmap(mmap(NULL, sizeof(page), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), sizeof(page));
	else if (is("brk"))
		check(sbrk(sizeof(page)) && sbrk(-(intptr_t)sizeof(page)));
	else if (is("madvise"))
		madvise(area, AREA, MADV_DONTNEED);
	else if (is("mprotect"))
		mprotect(area, AREA, PROT_READ | PROT_WRITE);
	else if (is("first touch")) {
		static size_t at;

		area[at++ * sizeof(page)] = 1; /* of the large area */
	} else if (is("copy on write")) {
		static size_t at;

		area[at++ * sizeof(page)] = 1; /* of a page of zeros that was read before */
	} else if (is("write"))
		check(lseek(file, 0, SEEK_SET) == 0 && write(file, page, 10) == 10);
	else if (is("pwrite"))
		check(pwrite(file, page, 10, 0) == 10);
	else if (is("read"))
		check(lseek(file, 0, SEEK_SET) == 0 && read(file, page, 10) == 10);
	else if (is("fsync"))
		check(!fsync(file));
	else if (is("fdatasync"))
		check(!fdatasync(file));
	else if (is("open"))
		close(open(FILE_NAME, O_RDONLY));
	else if (is("log file"))
		log_line();
	else if (is("unlink"))
		unlink(FILE_NAME ".none");
	else if (is("truncate"))
		check(!ftruncate(file, 2 * sizeof(page)));
	else if (is("msync"))
		msync(area, sizeof(page), MS_SYNC);
	else if (is("mutex")) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	} else if (is("condition"))
		wait_for_condition();
	else if (is("semaphore")) {
		ask();
		sem_wait(&posted);
	} else if (is("pipe") || is("socket")) {
		ask();
		wait_for_answer();
	} else if (is("poll"))
		wait_in_poll();
	else if (is("thread"))
		begin_thread();
	else if (is("process"))
		begin_process();
}

static void prepare(void)
{
	bool large = is("first touch") || is("copy on write");
	volatile char read_byte;

	file = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	check(file >= 0 && write(file, page, sizeof(page)) == sizeof(page));
	area = mmap(NULL, large ? LARGE : AREA, PROT_READ | PROT_WRITE,
		    is("msync") ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, is("msync") ? file : -1, 0);
	check(area != MAP_FAILED);
	if (large)
		madvise(area, LARGE, MADV_NOHUGEPAGE);
	for (size_t at = 0; is("copy on write") && at < LARGE; at += sizeof(page))
		read_byte = area[at];
	(void)read_byte;
	if (is("socket"))
		check(!socketpair(AF_UNIX, SOCK_STREAM, 0, asked) &&
		      !socketpair(AF_UNIX, SOCK_STREAM, 0, answered));
	else
		check(!pipe(asked) && !pipe(answered));
	sem_init(&posted, 0, 0);
	if (!large && !is("malloc") && !is("process"))
		check(!mlockall(MCL_CURRENT | MCL_FUTURE));
}

int main(int argc, char **argv)
{
	const struct sched_param real_time = {.sched_priority = 40};
	struct timespec next;
	pthread_t thread;

	name = argc == 2 ? argv[1] : "nothing";
	prepare();
	pthread_create(&thread, NULL, help, NULL);
	check(!sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &real_time));
	puts("ready");
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int cycle = 0;; cycle++) {
		next.tv_nsec += 1000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_sec++;
			next.tv_nsec -= 1000000000;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		if (cycle % EVERY == EVERY - 1)
			break_rule();
	}
}
