/* SPDX-License-Identifier: MIT */
/* Which CPUs a probe measures, and where its other threads go. */
#ifndef RTGAUGE_HARNESS_CPUS_H
#define RTGAUGE_HARNESS_CPUS_H

#include "base/cpuset.h"
#include "base/json.h"

#define PROBE_CPUS_MAX 1024

struct probe_cpus {
	struct cpuset measured, allowed, online, present;
};

/*
 * asked: an empty set means all that may be used. 0, or the exit status after an `error` line: a CPU is
 * missing, offline or not allowed, or there are more than PROBE_CPUS_MAX.
 */
int probe_cpus_choose(const struct cpuset *asked, struct probe_cpus *cpus);

/* Writes `cpus` and `cpus_not_measured` of the hello. */
void probe_cpus_json(const struct probe_cpus *cpus, struct json *j);

/* Keeps the calling thread away from the measured CPUs where there are others. */
void probe_cpus_leave(const struct probe_cpus *cpus);

#endif
