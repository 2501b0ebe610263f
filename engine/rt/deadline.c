// SPDX-License-Identifier: MIT
#include "rt/deadline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rt/policy.h"

#define KERNEL_DEADLINE 6

/* The kernel's struct sched_attr, which not every C library has. */
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

int deadline_set(const struct deadline *deadline)
{
	struct attr attr = {
		.size = sizeof(attr),
		.policy = KERNEL_DEADLINE,
		.runtime_ns = (uint64_t)deadline->runtime_ns,
		.deadline_ns = (uint64_t)deadline->deadline_ns,
		.period_ns = (uint64_t)deadline->period_ns,
	};

	return syscall(SYS_sched_setattr, 0, &attr, 0) ? errno : 0;
}

/* The shortest period that the kernel takes (us); its default where it does not say. */
static int64_t shortest_us(void)
{
	char line[32] = "";
	int64_t us = 0;
	FILE *file = fopen("/proc/sys/kernel/sched_deadline_period_min_us", "re");

	if (file && fgets(line, sizeof(line), file))
		us = strtoll(line, NULL, 10);
	if (file)
		fclose(file);
	return us > 0 ? us : 100;
}

char *deadline_refusal(int error, const struct deadline *deadline, int pinned_cpu, char *text, size_t size)
{
	if (error == EPERM && !policy_may_nice())
		snprintf(text, size, "SCHED_DEADLINE is refused: it needs CAP_SYS_NICE; run as root");
	else if (error == EPERM && pinned_cpu >= 0)
		snprintf(
			text, size,
			"SCHED_DEADLINE is refused for a thread that is pinned to CPU %d (EPERM): start it in an exclusive cpuset of that CPU alone (cpuset.cpus.partition = root), or use --policy fifo",
			pinned_cpu);
	else if (error == EPERM)
		snprintf(
			text, size,
			"SCHED_DEADLINE is refused (EPERM): this process may not use every CPU of its cpuset (its affinity is smaller), or the cpuset has no deadline bandwidth; start it without taskset");
	else if (error == EINVAL && deadline->period_ns < shortest_us() * 1000)
		snprintf(text, size,
			 "SCHED_DEADLINE refuses a period of %" PRId64
			 " us (EINVAL): the kernel takes %" PRId64
			 " us at the least (kernel.sched_deadline_period_min_us); give a longer one",
			 deadline->period_ns / 1000, shortest_us());
	else if (error == EBUSY)
		snprintf(
			text, size,
			"SCHED_DEADLINE is refused (EBUSY): together all deadline tasks would get more than the kernel grants (kernel.sched_rt_runtime_us of each sched_rt_period_us on each CPU); shorten the execution times");
	else
		snprintf(text, size,
			 "SCHED_DEADLINE with %" PRId64 " ns in each %" PRId64 " ns was refused: %s",
			 deadline->runtime_ns, deadline->period_ns, strerror(error));
	return text;
}
