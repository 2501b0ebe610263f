/* SPDX-License-Identifier: MIT */
/* Threads that wait for a CPU that another thread does not give up. */
#ifndef RTGAUGE_CPU_HOLDER_H
#define RTGAUGE_CPU_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A thread as /proc/PID/task/TID/stat shows it (proc(5)). */
struct thread_stat {
	long long used_ticks; /* user and system time, in clock ticks */
	pid_t pid, tid;
	int cpu;      /* on which it runs, or ran last */
	int priority; /* real-time priority; 0: none */
	int policy;
	char state;
	char name[64];
};

/* Reads one line of a stat file. false: it is none. */
bool thread_stat_parse(const char *line, struct thread_stat *stat);

/* One thread of this process. false: it has gone. */
bool thread_stat_own(pid_t tid, struct thread_stat *stat);

/*
 * The thread that runs on this CPU, found by two looks 0.2 s apart at every thread of the machine; those of
 * this process are left out. false: none that /proc shows ran there.
 */
bool cpu_holder_find(int cpu, struct thread_stat *holder);

/* "hog (pid 12, thread 13, FIFO 99)", as far as it is known. */
const char *cpu_holder_text(const struct thread_stat *holder, char *text, size_t size);

#endif
