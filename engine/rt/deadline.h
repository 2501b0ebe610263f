/* SPDX-License-Identifier: MIT */
/* SCHED_DEADLINE: a budget of CPU time in each period. */
#ifndef RTGAUGE_DEADLINE_H
#define RTGAUGE_DEADLINE_H

#include <stdint.h>
#include <sys/types.h>

/* runtime_ns <= deadline_ns <= period_ns */
struct deadline {
	int64_t runtime_ns, deadline_ns, period_ns;
};

/* Makes a thread (tid 0: the calling one) a deadline task. Returns 0 or an errno. */
int deadline_set(pid_t tid, const struct deadline *deadline);

#endif
