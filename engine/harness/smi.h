/* SPDX-License-Identifier: MIT */
/* Counts how often the firmware stopped a CPU (system management interrupts), if the processor counts that:
 * Intel's MSR_SMI_COUNT, which perf reads (arch/x86/events/msr.c). */
#ifndef RTGAUGE_SMI_H
#define RTGAUGE_SMI_H

#include <stdint.h>

#include "base/json.h"

/* Counts on each online CPU from now on. */
void smi_begin(void);

/* Returns the count of all CPUs; -1: unknown. */
int64_t smi_read(void);

/* Writes the mark `smi` if there were any. */
void smi_mark(struct json *j);

#endif
