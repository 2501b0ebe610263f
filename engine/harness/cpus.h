/* SPDX-License-Identifier: MIT */
/* Which CPUs a probe measures, where two tasks that work together run, and where its other threads go. */
#ifndef RTGAUGE_HARNESS_CPUS_H
#define RTGAUGE_HARNESS_CPUS_H

#include "base/cpuset.h"
#include "base/json.h"

#define PROBE_CPUS_MAX 1024

struct probe_cpus {
	struct cpuset measured;
	struct cpuset allowed;	 /* may be measured where nobody says which: see probe_cpus_allow */
	struct cpuset affinity;	 /* that the process was started with */
	struct cpuset reachable; /* online, and the cpuset lets us go there */
	struct cpuset online, present;
	bool named; /* the measured ones were asked for by number */
};

/*
 * asked: an empty set means all that are allowed. 0, or the exit status after an `error` line: a CPU is
 * missing, offline or not in the cpuset, or there are more than PROBE_CPUS_MAX.
 */
int probe_cpus_choose(const struct cpuset *asked, struct probe_cpus *cpus);

/*
 * Sets `allowed`, from `affinity`, `reachable` and the CPUs that the machine was booted to isolate: all that
 * are reachable, the isolated ones too, which no process inherits in its affinity. Where the affinity lacks
 * another one than those it was narrowed on purpose, as by taskset: then it is obeyed.
 */
void probe_cpus_allow(struct probe_cpus *cpus, const struct cpuset *isolated);

/* Writes `cpus` and `cpus_not_measured` of the hello. */
void probe_cpus_json(const struct probe_cpus *cpus, struct json *j);

/* Keeps the calling thread away from the measured CPUs where there are others. */
void probe_cpus_leave(const struct probe_cpus *cpus);

enum placement { PLACEMENT_SAME_CPU, PLACEMENT_SAME_CORE, PLACEMENT_OTHER_CORE };

extern const char *const placement_names[];

/*
 * The first CPU that was asked for, and the one for the other task: itself, a hardware thread of the same
 * core, or a CPU of another core; of those that were asked for, else of those that are allowed. They are then
 * the measured ones. 0, or the exit status after an `error` line: there is no such CPU.
 */
int placement_choose(struct probe_cpus *cpus, enum placement placement, int *first, int *second);

/* The hardware threads of this CPU's core; itself alone where the kernel does not say. */
void placement_core(int cpu, struct cpuset *core);

/* For a task beside one on the CPU `first`: a CPU of another core, where there is none another hardware
 * thread, where there is none itself; of the measured CPUs, else of those that are allowed. */
int placement_beside(const struct probe_cpus *cpus, int first);

#endif
