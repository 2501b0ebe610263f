/* SPDX-License-Identifier: MIT */
/* Finds the thread that does not give up a CPU. */
#ifndef RTGAUGE_CPU_HOLDER_H
#define RTGAUGE_CPU_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A thread as /proc/PID/task/TID/stat shows it (proc(5)). */
struct thread_stat {
	long long used_ticks; /* user and system time, in clock ticks */
	pid_t pid, tid;
	int cpu;      /* the CPU on which it runs, or ran last */
	int priority; /* real-time priority; 0: none */
	int policy;
	char state;
	char name[64];
};

/* Parses one line of a stat file. Returns false for any other text. */
bool thread_stat_parse(const char *line, struct thread_stat *stat);

/* Reads one thread of this process. Returns false if the thread has ended. */
bool thread_stat_own(pid_t tid, struct thread_stat *stat);

/*
 * Finds the thread that runs on this CPU. Looks twice, 0.2 s apart, at every thread of the machine except
 * this process's. Returns false if no thread in /proc ran there.
 */
bool cpu_holder_find(int cpu, struct thread_stat *holder);

/* Writes "hog (pid 12, thread 13, FIFO 99)", as far as this is known. */
const char *cpu_holder_text(const struct thread_stat *holder, char *text, size_t size);

#endif
