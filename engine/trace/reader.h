/* SPDX-License-Identifier: MIT */
/* Reads the recording of an instance of tracefs on all CPUs as it grows. Its times are on CLOCK_MONOTONIC. */
#ifndef RTGAUGE_TRACE_READER_H
#define RTGAUGE_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/page_store.h"

#define TRACE_CPUS_MAX 1024

struct trace_reader {
	int instance, rings[TRACE_CPUS_MAX], cpus[TRACE_CPUS_MAX];
	unsigned int ring_count;
	size_t data_offset, page_size;
	unsigned char *page;
	struct page_store *stores; /* of the rings; NULL: pages are not kept */
	bool dropped;		   /* the kernel dropped events; the user resets it */
	/* Of each ring: whether it may hold more records than were taken, and the time of the last one taken.
	 */
	bool left[TRACE_CPUS_MAX];
	int64_t reached_ns[TRACE_CPUS_MAX];
	int64_t until_ns; /* what trace_reader_take returned last */
};

/* Opens the instance and the ring of each CPU (trace_cpus). Returns NULL, or the name of the missing thing,
   with errno. */
const char *trace_reader_open(struct trace_reader *reader, const char *instance, const char *buffer_kb);

/* Keeps the newest pages of each ring, about so many bytes, in `stores`. Returns false if there is no
 * memory for them.
 */
bool trace_reader_keep(struct trace_reader *reader, size_t bytes);

/* Calls `take` for each record; each CPU's records are in time order. record NULL: the kernel dropped events
 * of this CPU before this time.
 * Takes about `bytes` of each CPU. Returns the time up to which the records of all CPUs were taken;
 * INT64_MAX: none are left. The next call leaves out the CPUs that are ahead of this time. */
int64_t trace_reader_take(struct trace_reader *reader, size_t bytes,
			  void (*take)(void *user, const unsigned char *record, size_t len, int64_t time_ns,
				       int cpu),
			  void *user);

/* Closes the rings. */
void trace_reader_close(struct trace_reader *reader);

#endif
