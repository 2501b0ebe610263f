/* SPDX-License-Identifier: MIT */
/* The newest pages of one CPU's ring, in memory of a fixed size: the oldest pages make room for new ones. */
#ifndef RTGAUGE_TRACE_PAGE_STORE_H
#define RTGAUGE_TRACE_PAGE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/page.h"

struct ring_window {
	int64_t from_ns, to_ns;
};

/* A page as the kernel returns it (trace/page.h). */
struct ring_page {
	/* the time of its first event; of the next page, or of its last event if later ones were
	   overwritten, or of the last reading of the ring */
	int64_t first_ns, until_ns;
	int64_t dropped_count; /* how many events before it were overwritten; 0: none or unknown */
	size_t len;	       /* of its bytes, up to its last event */
	const unsigned char *bytes;
	int cpu;
	bool dropped; /* events before it were overwritten */
};

struct page_store {
	int cpu;
	unsigned char *bytes;
	size_t size, at, page_size, data_offset; /* at: where the next page comes */
	struct ring_page *pages;		 /* a ring: the oldest is at `first` */
	unsigned int first, count, max;
	bool full; /* pages had to go */
};

/* size: bytes of the ring; the store has room for more. page_size, data_offset: of the kernel's pages.
 * Returns false with errno if there is no memory. */
bool page_store_open(struct page_store *store, int cpu, size_t size, size_t page_size, size_t data_offset);

/* Reads the next page that has events from a ring. Returns false if there is none. */
bool page_store_read(struct page_store *store, int ring, struct trace_page *page);

/* Copies pages that overlap one of the windows, in time order, and returns how many. Their bytes stay valid
 * until the next reading. room: at least store->max. */
unsigned int page_store_choose(const struct page_store *store, const struct ring_window *windows,
			       unsigned int count, struct ring_page *room);

void page_store_close(struct page_store *store);

#endif
