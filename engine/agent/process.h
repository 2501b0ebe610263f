/* SPDX-License-Identifier: MIT */
/* Who a process is: its number alone may be given to another one later. */
#ifndef RTGAUGE_PROCESS_H
#define RTGAUGE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
	pid_t pid, parent;
	char state;
	int threads;   /* that have not ended: its own, of a zombie those that outlived it */
	int64_t start; /* clock ticks since boot: field 22 of /proc/PID/stat */
};

/* Reads the text of /proc/PID/stat; false: it is not one. */
bool process_parse(const char *text, struct process *process);

/* false: there is no such process. */
bool process_read(pid_t pid, struct process *process);

/* The process that had this start time lives still: one of its threads does (a zombie alone does not). */
bool process_lives(pid_t pid, int64_t start);

/* Sends a signal to it, and SIGCONT after any but SIGKILL and SIGSTOP: what is stopped hears nothing else.
 * Returns 0 or an errno; ESRCH: it is gone, whoever may have its number now. */
int process_signal(pid_t pid, int64_t start, int number);

#endif
