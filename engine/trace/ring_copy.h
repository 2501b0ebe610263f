/* SPDX-License-Identifier: MIT */
/*
 * Copies of what the kernel's trace rings hold of some windows of time. The rings are read while the kernel
 * goes on to write them: nothing is stopped, and there is no time of which nothing is recorded.
 */
#ifndef RTGAUGE_RING_COPY_H
#define RTGAUGE_RING_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_window {
	int64_t from_ns, to_ns;
};

/* A page as the kernel gives it (trace/page.h). */
struct ring_page {
	int cpu;
	int64_t first_ns, until_ns; /* of its first event; to the next page, to its last event where others
				       were overwritten then, or when it was read */
	bool dropped;		    /* events before it were overwritten */
	int64_t dropped_count;	    /* how many; 0: the kernel does not say */
	size_t len;		    /* behind it there is nothing */
	const unsigned char *bytes;
};

/* Opens the rings of all CPUs that are online; false and errno. */
bool ring_copy_open(int instance, size_t page_size, size_t data_offset);

/* How many CPUs have rings, and which. */
unsigned int ring_copy_cpus(const int **cpus);

/*
 * Reads all rings to their ends, and gives the pages that overlap one of the windows, each CPU's in order of
 * time. They stay until the next call. The newest pages of a call before are looked at again. *cut: there was
 * no room for all.
 */
unsigned int ring_copy_take(const struct ring_window *windows, unsigned int count,
			    const struct ring_page **pages, bool *cut);

void ring_copy_close(void);

#endif
