/* SPDX-License-Identifier: MIT */
/* The threads of a watched program, from /proc. */
#ifndef RTGAUGE_THREADS_H
#define RTGAUGE_THREADS_H

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

#define PLACE_TEXT_MAX 96

/* Where and how a thread may run. Texts are cut. */
struct thread_place {
	int policy, priority;
	int64_t slack_ns; /* by how much its timers may be late on purpose; 0: unknown, or a real-time policy
			   */
	char cpus[PLACE_TEXT_MAX];  /* as in Cpus_allowed_list of /proc/PID/status */
	char group[PLACE_TEXT_MAX]; /* its control group (of the controller cpu, or of version 2) */
};

/* Reads the place. Returns false if the thread has ended. */
bool thread_place(pid_t tid, struct thread_place *place);

/* Parses the text of /proc/PID/task/TID/stat. Returns false for any other text. */
bool thread_parse(const char *text, struct watched_thread *thread, struct thread_counts *counts);

/*
 * Finds threads of a program and of the programs that it started: threads with one of these names
 * (separated by commas), or without names all with a real-time policy, or all threads if no thread has
 * one. If there are more than WATCH_THREADS_MAX, those with the highest real-time priority are kept; then
 * come the program's own first, in the order of their numbers. Returns how many; -1: there is no such
 * program. *left_out: how many are not kept.
 */
int threads_find(pid_t pid, const char *names, struct watched_thread threads[WATCH_THREADS_MAX],
		 int *left_out);

/* Finds the lowest and the highest number of all threads of a program and of the programs that it started.
 * Returns false if there is no such program. */
bool threads_range(pid_t pid, pid_t *first, pid_t *last);

/* Returns how many programs have this name: that of their first thread, which the kernel cuts, or that of
 * their executable file. *pid is the last such program. */
int threads_find_program(const char *name, pid_t *pid);

/* Reads the kernel's counts for the thread. Returns false if it has ended. */
bool thread_count(pid_t tid, struct thread_counts *counts);

/* Reads how long and how often the thread ran. Returns false if the kernel does not count this
   (CONFIG_SCHED_INFO). */
bool thread_run(pid_t tid, int64_t *cpu_ns, int64_t *slices);

/* Returns the policy of a thread of any program, and its real-time priority (0: none), without lent
 * priorities. -1: the thread has ended. */
int thread_priority(pid_t tid, int *priority);

#endif
