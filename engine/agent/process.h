/* SPDX-License-Identifier: MIT */
/* Identifies processes. A pid alone is not enough, because it may be reused. */
#ifndef RTGAUGE_PROCESS_H
#define RTGAUGE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
	pid_t pid, parent;
	char state;
	int threads;   /* threads that have not ended; for a zombie, the threads that outlived it */
	int64_t start; /* clock ticks since boot: field 22 of /proc/PID/stat */
};

/* Parses the text of /proc/PID/stat. Returns false for any other text. */
bool process_parse(const char *text, struct process *process);

/* Returns false if there is no such process. */
bool process_read(pid_t pid, struct process *process);

/* Returns whether the process with this start time still lives, that is, whether one of its threads does.
 * A zombie alone does not count. */
bool process_lives(pid_t pid, int64_t start);

/* Sends a signal, then SIGCONT unless it was SIGKILL or SIGSTOP, because a stopped process handles no
 * other signal. Returns 0 or an errno; ESRCH if the process is gone, even if its pid was reused. */
int process_signal(pid_t pid, int64_t start, int number);

#endif
