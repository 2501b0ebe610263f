/* SPDX-License-Identifier: MIT */
/* Chooses CPUs: the measured ones, the places of two tasks that work together, and places for other
 * threads. */
#ifndef RTGAUGE_HARNESS_CPUS_H
#define RTGAUGE_HARNESS_CPUS_H

#include "base/cpuset.h"
#include "base/json.h"

#define PROBE_CPUS_MAX 1024

struct probe_cpus {
	struct cpuset measured;
	struct cpuset allowed;	 /* measured by default: see probe_cpus_allow */
	struct cpuset affinity;	 /* affinity at the start of the process */
	struct cpuset reachable; /* online, and allowed by the cpuset */
	struct cpuset online, present;
	bool named; /* the measured CPUs were given by number */
};

/*
 * asked: the wanted CPUs; an empty set means all that are allowed. Returns 0, or the exit status after an
 * `error` line if a CPU is missing, offline or not in the cpuset, or if there are more than
 * PROBE_CPUS_MAX.
 */
int probe_cpus_choose(const struct cpuset *asked, struct probe_cpus *cpus);

/*
 * Sets `allowed` from `affinity`, `reachable` and the isolated CPUs. It has all reachable CPUs, even the
 * isolated ones, which no process inherits in its affinity. If the affinity lacks any other CPU, somebody
 * narrowed it on purpose, for example with taskset, and it is kept.
 */
void probe_cpus_allow(struct probe_cpus *cpus, const struct cpuset *isolated);

/* Writes `cpus` and `cpus_not_measured` of the hello. */
void probe_cpus_json(const struct probe_cpus *cpus, struct json *j);

/* Keeps the calling thread away from the measured CPUs, if there are others. */
void probe_cpus_leave(const struct probe_cpus *cpus);

enum placement { PLACEMENT_SAME_CPU, PLACEMENT_SAME_CORE, PLACEMENT_OTHER_CORE };

extern const char *const placement_names[];

/*
 * Chooses the first of the wanted CPUs, and a CPU for the other task: the same CPU, a hardware thread of
 * the same core, or a CPU of another core. It is a wanted CPU or else an allowed one. Both are then the
 * measured CPUs. Returns 0, or the exit status after an `error` line if there is no such CPU.
 */
int placement_choose(struct probe_cpus *cpus, enum placement placement, int *first, int *second);

/* Returns the hardware threads of this CPU's core; only the CPU itself if the kernel does not report them. */
void placement_core(int cpu, struct cpuset *core);

/* Chooses a CPU for a second task, given the first task's CPU `first`: of another core, else another
 * hardware thread, else the same. It is a measured CPU or else an allowed one. */
int placement_beside(const struct probe_cpus *cpus, int first);

#endif
