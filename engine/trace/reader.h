/* SPDX-License-Identifier: MIT */
/* Reads the recording of an instance of tracefs on all CPUs as it grows. Its times are on CLOCK_MONOTONIC. */
#ifndef RTGAUGE_TRACE_READER_H
#define RTGAUGE_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_CPUS_MAX 1024

struct trace_reader {
	int instance, rings[TRACE_CPUS_MAX], cpus[TRACE_CPUS_MAX];
	unsigned int ring_count;
	size_t data_offset;
	unsigned char *page;
	bool dropped; /* the kernel dropped events; the user resets it */
};

/* Opens the instance and the ring of each online CPU. Returns NULL, or the name of the missing thing, with
   errno. */
const char *trace_reader_open(struct trace_reader *reader, const char *instance, const char *buffer_kb);

/* Calls `take` for each record; each CPU's records are in time order. record NULL: the kernel dropped events
 * of this CPU before this time. */
void trace_reader_take(struct trace_reader *reader,
		       void (*take)(void *user, const unsigned char *record, size_t len, int64_t time_ns,
				    int cpu),
		       void *user);

/* Closes the rings. */
void trace_reader_close(struct trace_reader *reader);

#endif
