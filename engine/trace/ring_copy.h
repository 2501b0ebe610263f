/* SPDX-License-Identifier: MIT */
/*
 * Copies the parts of the kernel's trace rings that belong to some windows of time. The rings are read
 * while the kernel continues to write. Nothing is stopped, and the recording has no gap.
 */
#ifndef RTGAUGE_RING_COPY_H
#define RTGAUGE_RING_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_window {
	int64_t from_ns, to_ns;
};

/* A page as the kernel returns it (trace/page.h). */
struct ring_page {
	int cpu;
	/* the time of its first event; of the next page, or of its last event if later ones were
	   overwritten, or of its reading */
	int64_t first_ns, until_ns;
	bool dropped;	       /* events before it were overwritten */
	int64_t dropped_count; /* how many; 0: unknown */
	size_t len;	       /* it has no successor yet */
	const unsigned char *bytes;
};

/* Opens the rings of all online CPUs. ring_size: bytes of one. Returns false with errno on failure. */
bool ring_copy_open(int instance, size_t page_size, size_t data_offset, size_t ring_size);

/* Return how many CPUs have rings, and their numbers. */
unsigned int ring_copy_cpus(const int **cpus);

/*
 * Reads all rings to their ends. Returns the pages that overlap one of the windows; each CPU's pages are
 * in time order. They stay valid until the next call. The newest pages of the previous call are read
 * again. *cut: whether there was no room for all pages.
 */
unsigned int ring_copy_take(const struct ring_window *windows, unsigned int count,
			    const struct ring_page **pages, bool *cut);

void ring_copy_close(void);

#endif
