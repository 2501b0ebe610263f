/* SPDX-License-Identifier: MIT */
/* A page of the kernel's trace buffer, as trace_pipe_raw returns it (include/linux/ring_buffer.h). */
#ifndef RTGAUGE_TRACE_PAGE_H
#define RTGAUGE_TRACE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_page {
	const unsigned char *at, *end;
	uint64_t time_ns;
	bool dropped;	       /* events were lost before this page */
	int64_t dropped_count; /* how many; 0: unknown */
};

/* data_offset: offset of the first event, from events/header_page. Returns false if it is not a page. */
bool trace_page_open(struct trace_page *page, const unsigned char *bytes, size_t len, size_t data_offset);

/* Returns the next event's time and record; NULL at the end. A damaged page ends early. */
const unsigned char *trace_page_next(struct trace_page *page, int64_t *time_ns, size_t *len);

#endif
