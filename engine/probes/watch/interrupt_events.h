/* SPDX-License-Identifier: MIT */
/* The kernel's events of interrupts, softirqs, inter-processor interrupts and NMIs. */
#ifndef RTGAUGE_WATCH_INTERRUPT_EVENTS_H
#define RTGAUGE_WATCH_INTERRUPT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/instance.h"

#define INTERRUPT_NAME_MAX 32
#define INTERRUPT_EVENTS_MAX 64

/* name: such as "timer interrupt", "irq 31 eth0" or "softirq NET_RX". An NMI has one event, at its end: it
 * begins and ends, and has lasted so long. */
struct interrupt {
	char name[INTERRUPT_NAME_MAX];
	bool begins, ends;
	bool reschedules; /* the kernel will switch to another task */
	int64_t lasted_ns;
};

struct interrupt_event {
	unsigned int id;
	char event[64];			   /* GROUP/NAME */
	struct trace_field number, action; /* irq or vector of the softirq; where the handler's name is */
	struct trace_field lasted;
};

struct interrupt_events {
	struct interrupt_event all[INTERRUPT_EVENTS_MAX];
	size_t count;
};

/* Records them. Returns false if this kernel does not have them. */
bool interrupt_events_enable(struct interrupt_events *events, int instance);

void interrupt_events_disable(const struct interrupt_events *events, int instance);

/* Reads a record. flags: its common_flags. Returns false if it is of another event. */
bool interrupt_events_read(const struct interrupt_events *events, unsigned int id,
			   const unsigned char *record, size_t len, unsigned int flags,
			   struct interrupt *interrupt);

#endif
