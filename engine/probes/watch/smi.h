/* SPDX-License-Identifier: MIT */
/* Counts how often the firmware stopped a CPU (system management interrupts), if the processor counts that:
 * Intel's MSR_SMI_COUNT, which perf reads (arch/x86/events/msr.c). */
#ifndef RTGAUGE_WATCH_SMI_H
#define RTGAUGE_WATCH_SMI_H

#include <stdint.h>

#include "trace/reader.h"

struct smi_counter {
	int fds[TRACE_CPUS_MAX], count; /* of the CPUs; count 0: nothing is counted */
};

/* Counts on each online CPU from now on. */
void smi_begin(struct smi_counter *smi);

/* Returns the count of all CPUs; -1: unknown. */
int64_t smi_read(const struct smi_counter *smi);

#endif
