/* SPDX-License-Identifier: MIT */
/*
 * Copies the parts of the kernel's trace rings that belong to some windows of time. The rings are read
 * while the kernel continues to write. Nothing is stopped, and the recording has no gap.
 */
#ifndef RTGAUGE_RING_COPY_H
#define RTGAUGE_RING_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/page_store.h"

/* Opens the rings of all CPUs (trace_cpus). ring_size: bytes of one. Returns false with errno on failure. */
bool ring_copy_open(int instance, size_t page_size, size_t data_offset, size_t ring_size);

/* Takes the pages from stores that somebody else fills, one for each CPU. Returns false with errno on
 * failure. */
bool ring_copy_share(struct page_store *stores, unsigned int count);

/* Return how many CPUs have rings, and their numbers. */
unsigned int ring_copy_cpus(const int **cpus);

/*
 * Reads all rings to their ends, if they are not shared. Returns the pages that overlap one of the windows;
 * each CPU's pages are in time order. They stay valid until the next reading.
 */
unsigned int ring_copy_take(const struct ring_window *windows, unsigned int count,
			    const struct ring_page **pages);

void ring_copy_close(void);

#endif
