/* SPDX-License-Identifier: MIT */
/*
 * Counters of each CPU that perf has: how often the firmware stopped it (system management interrupts, Intel
 * only), its cycles and nominal cycles (arch/x86/events/msr.c), and its cycles, instructions and last-level
 * misses (PERF_TYPE_HARDWARE). They are read at the beginning and the end only, because the kernel interrupts
 * the CPU to read them. They count all that ran on the CPU: a counter of one thread would cost at each
 * switch.
 */
#ifndef RTGAUGE_CPU_COUNTERS_H
#define RTGAUGE_CPU_COUNTERS_H

#include <stdint.h>

#include "base/cpuset.h"
#include "base/json.h"

/* Counts on each online CPU from now on. */
void cpu_counters_begin(void);

/* Returns the number of SMIs in all CPUs; -1: unknown. */
int64_t cpu_counters_smis(void);

/* Writes the mark `smi` if there were any, and the results `frequency` and `instructions` for each of these
 * CPUs that has the counters. */
void cpu_counters_write(const struct cpuset *measured, struct json *j);

#endif
