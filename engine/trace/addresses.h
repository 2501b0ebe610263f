/* SPDX-License-Identifier: MIT */
/* The addresses of functions in trace events: handlers, callers and interrupted code. */
#ifndef RTGAUGE_TRACE_ADDRESSES_H
#define RTGAUGE_TRACE_ADDRESSES_H

#include <stddef.h>
#include <stdint.h>

#include "trace/events.h"
#include "trace/symbols.h"

#define ADDRESSES_FIELDS 3

struct addresses {
	unsigned int count;
	struct {
		unsigned int id, field_count;
		struct {
			uint16_t offset, size;
		} fields[ADDRESSES_FIELDS];
	} events[TRACE_EVENTS_MAX];
	unsigned int stack_id; /* id of stack events; 0: none */
	size_t stack_offset;
	uint64_t text; /* base of 4-byte fields that are offsets, as in preemptirq; 0: unknown */
};

/* Adds an event, given its format file, if it has such fields. */
void addresses_add(struct addresses *addresses, const char *format);

/* Adds the stack event, given its format file. Returns false if it is another event. */
bool addresses_add_stack(struct addresses *addresses, const char *format);

/* Returns whether some fields are offsets from the beginning of the kernel's text. */
bool addresses_need_text(const struct addresses *addresses);

/* Requests the name of each address on a page. */
void addresses_collect(const struct addresses *addresses, const unsigned char *page, size_t len,
		       size_t data_offset, struct symbols *symbols);

#endif
