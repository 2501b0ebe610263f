/* SPDX-License-Identifier: MIT */
/* SCHED_DEADLINE: a budget of CPU time in each period. */
#ifndef RTGAUGE_DEADLINE_H
#define RTGAUGE_DEADLINE_H

#include <stdint.h>

/* runtime_ns <= deadline_ns <= period_ns */
struct deadline {
	int64_t runtime_ns, deadline_ns, period_ns;
};

/* Makes the calling thread a deadline task. 0 or an errno. */
int deadline_set(const struct deadline *deadline);

#endif
