/* SPDX-License-Identifier: MIT */
/* What all users of perf share (perf_event_open(2)). */
#ifndef RTGAUGE_PERF_H
#define RTGAUGE_PERF_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_DEVICES "/sys/bus/event_source/devices"
#define PERF_CORE_UNITS_MAX 4

/* Sets perf's type and number of an event of the MSRs, such as "smi" (arch/x86/events/msr.c). Returns false
 * if there is none. */
bool perf_msr_event(const char *name, struct perf_event_attr *attr);

/* Perf's numbers of the units that count what the cores do; a machine with different cores has several
 * (Intel's hybrid processors, Arm's big.LITTLE). */
struct perf_core_units {
	int count;
	uint32_t types[PERF_CORE_UNITS_MAX];
};

/* Finds the units of different cores in `devices`, which is PERF_DEVICES: these have the file `cpus`. A unit
 * outside of the cores has the file `cpumask` instead. None if all cores are the same: then the kernel finds
 * their unit. */
struct perf_core_units perf_find_core_units(const char *devices);

/* Sets perf's type and number of an event. `hardware`: a number of the type PERF_TYPE_HARDWARE; `unit`: of
 * one of the units, or 0. PERF_COUNT_HW_CACHE_MISSES stands for misses of the last level, which on Arm is
 * another event (drivers/perf/arm_pmuv3.c). */
void perf_hardware_event(uint64_t hardware, uint32_t unit, struct perf_event_attr *attr);

/* Copies the ring's next record, with its header, and frees its place in the ring. Returns its size; 0: there
 * is none. A record that is damaged or larger than `room` is dropped with all after it. */
size_t perf_ring_next(struct perf_event_mmap_page *ring, void *record, size_t room);

#endif
