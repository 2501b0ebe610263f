/* SPDX-License-Identifier: MIT */
/* The threads of a program that is watched, as /proc knows them. */
#ifndef RTGAUGE_WATCH_THREADS_H
#define RTGAUGE_WATCH_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WATCH_THREADS_MAX 32

struct thread_counts {
	int64_t voluntary_switches, involuntary_switches, minor_faults, major_faults;
};

struct watched_thread {
	pid_t tid;
	char name[16];
	int policy, priority; /* the kernel's numbers */
};

/* Reads the text of /proc/PID/task/TID/stat; false: it is not one. */
bool thread_parse(const char *text, struct watched_thread *thread, struct thread_counts *counts);

/*
 * The threads of a program and of the programs that it started that have one of these names (with commas
 * between), or without names those with a real-time policy, or where there are none all; its own first, in
 * the order of their numbers. Gives how many; -1: there is no such program. *left_out: those above
 * WATCH_THREADS_MAX.
 */
int threads_find(pid_t pid, const char *names, struct watched_thread threads[WATCH_THREADS_MAX],
		 int *left_out);

/* The lowest and the highest number of all threads of a program and of the programs that it started; false:
 * there is no such program. */
bool threads_range(pid_t pid, pid_t *first, pid_t *last);

/* How many programs have this name (that of their first thread); *pid is the last of them. */
int threads_find_program(const char *name, pid_t *pid);

/* What the kernel counted for it; false: it has ended. */
bool thread_count(pid_t tid, struct thread_counts *counts);

/* The time that it ran, and how often it began to; false: the kernel does not tell (CONFIG_SCHED_INFO). */
bool thread_run(pid_t tid, int64_t *cpu_ns, int64_t *slices);

/* The number of the system call that the thread is asleep in; -1: it is in none. */
long thread_syscall(pid_t tid);

/* The policy of a thread of any program, and its real-time priority, 0 where it has none; not what is lent to
 * it. -1: it has ended. */
int thread_priority(pid_t tid, int *priority);

#endif
