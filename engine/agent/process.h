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
	int64_t start; /* clock ticks since boot: field 22 of /proc/PID/stat */
};

/* Reads the text of /proc/PID/stat; false: it is not one. */
bool process_parse(const char *text, struct process *process);

/* false: there is no such process. */
bool process_read(pid_t pid, struct process *process);

/* The process that had this start time lives still (a zombie does not). */
bool process_lives(pid_t pid, int64_t start);

#endif
