/* SPDX-License-Identifier: MIT */
/* A real-time loop of 2 ms that breaks a rule in each 10th cycle, each in a function of its own. At the end,
 * it writes how often: FUNCTION CALL COUNT. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline))
#define WHOLE __asm__ volatile("" ::: "memory") /* no call is the last thing in a function */
#define PAGES 4096

static volatile sig_atomic_t over;
static long touched, grown, saved;
static char *pages;
static int disk;

APART static void touch_page(void)
{
	pages[4096 * (touched++ % PAGES)]++;
	WHOLE;
}

APART static void grow_buffer(void)
{
	void *buffer = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(buffer, 1 << 20);
	grown++;
	WHOLE;
}

APART static void save_log(void)
{
	fsync(disk);
	saved++;
	WHOLE;
}

APART static void control_step(int cycle)
{
	if (cycle % 10 == 2)
		touch_page();
	if (cycle % 10 == 5)
		grow_buffer();
	if (cycle % 10 == 8)
		save_log();
	WHOLE;
}

static void end(int number)
{
	over = number;
}

int main(int argc, char **argv)
{
	struct sched_param priority = {.sched_priority = 20};
	struct timespec at;

	if (argc < 2)
		return 2;
	signal(SIGTERM, end);
	pages = mmap(NULL, 4096L * PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(pages, 4096L * PAGES, MADV_NOHUGEPAGE);
	disk = open(argv[1], O_CREAT | O_WRONLY, 0600);
	if (disk < 0 || sched_setscheduler(0, SCHED_FIFO, &priority))
		return 3;
	puts("ready");
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &at);
	for (int cycle = 0; !over; cycle++) {
		at.tv_nsec += 2000000;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		control_step(cycle);
	}
	printf("touch_page minor %ld\ngrow_buffer mmap %ld\ngrow_buffer munmap %ld\nsave_log fsync %ld\n",
	       touched, grown, grown, saved);
	return 0;
}
