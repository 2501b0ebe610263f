/* SPDX-License-Identifier: MIT */
/* What all users of perf share (perf_event_open(2)). */
#ifndef RTGAUGE_PERF_H
#define RTGAUGE_PERF_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

/* Sets perf's type and number of an event of the MSRs, such as "smi" (arch/x86/events/msr.c). Returns false
 * if there is none. */
bool perf_msr_event(const char *name, struct perf_event_attr *attr);

/* Copies the ring's next record, with its header, and frees its place in the ring. Returns its size; 0: there
 * is none. A record that is damaged or larger than `room` is dropped with all after it. */
size_t perf_ring_next(struct perf_event_mmap_page *ring, void *record, size_t room);

#endif
