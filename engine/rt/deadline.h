/* SPDX-License-Identifier: MIT */
/* SCHED_DEADLINE: a budget of CPU time in each period, and why the kernel refuses it. */
#ifndef RTGAUGE_DEADLINE_H
#define RTGAUGE_DEADLINE_H

#include <stddef.h>
#include <stdint.h>

/* runtime_ns <= deadline_ns <= period_ns */
struct deadline {
	int64_t runtime_ns, deadline_ns, period_ns;
};

/* Makes the calling thread a deadline task. 0 or an errno. */
int deadline_set(const struct deadline *deadline);

/* One sentence: why it was refused with this errno, and what to do. pinned_cpu: the CPU that the thread is
 * pinned to, -1 where it is not. Returns text. */
char *deadline_refusal(int error, const struct deadline *deadline, int pinned_cpu, char *text, size_t size);

#endif
