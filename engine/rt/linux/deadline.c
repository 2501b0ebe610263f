// SPDX-License-Identifier: MIT
#include "rt/deadline.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KERNEL_DEADLINE 6

/* The kernel's struct sched_attr, which some C libraries lack. */
struct attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};

int deadline_set(pid_t tid, const struct deadline *deadline)
{
	struct attr attr = {
		.size = sizeof(attr),
		.policy = KERNEL_DEADLINE,
		.runtime_ns = (uint64_t)deadline->runtime_ns,
		.deadline_ns = (uint64_t)deadline->deadline_ns,
		.period_ns = (uint64_t)deadline->period_ns,
	};

	return syscall(SYS_sched_setattr, tid, &attr, 0) ? errno : 0;
}
