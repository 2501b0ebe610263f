/* SPDX-License-Identifier: MIT */
/*
 * Counters of each CPU that perf reads from model-specific registers (arch/x86/events/msr.c): how often the
 * firmware stopped the CPU (system management interrupts, Intel only), and the CPU's cycles. They are read at
 * the beginning and the end only, because the kernel interrupts the CPU to read them.
 */
#ifndef RTGAUGE_MSR_COUNTERS_H
#define RTGAUGE_MSR_COUNTERS_H

#include <stdint.h>

#include "base/cpuset.h"
#include "base/json.h"

/* Counts on each online CPU from now on. */
void msr_counters_begin(void);

/* Returns the number of SMIs in all CPUs; -1: unknown. */
int64_t msr_counters_smis(void);

/* Writes the mark `smi` if there were any, and a result `frequency` for each of these CPUs that counts its
 * cycles. */
void msr_counters_write(const struct cpuset *measured, struct json *j);

#endif
