/* SPDX-License-Identifier: MIT */
#include "base/perf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MSR "/sys/bus/event_source/devices/msr/"

static bool read_number(const char *path, const char *format, unsigned int *value)
{
	FILE *file = fopen(path, "re");
	bool read = file && fscanf(file, format, value) == 1;

	if (file)
		fclose(file);
	return read;
}

bool perf_msr_event(const char *name, struct perf_event_attr *attr)
{
	char path[sizeof(MSR) + 32];
	unsigned int type, event;

	snprintf(path, sizeof(path), MSR "events/%s", name);
	if (!read_number(MSR "type", "%u", &type) || !read_number(path, "event=%x", &event))
		return false;
	attr->type = type;
	attr->config = event;
	return true;
}

/* Copies what may wrap around the end of the ring. */
static void copy(const struct perf_event_mmap_page *ring, uint64_t at, void *to, size_t len)
{
	const char *data = (const char *)ring + ring->data_offset;
	size_t offset = (size_t)(at % ring->data_size);
	size_t first = len < ring->data_size - offset ? len : (size_t)ring->data_size - offset;

	memcpy(to, data + offset, first);
	memcpy((char *)to + first, data, len - first);
}

size_t perf_ring_next(struct perf_event_mmap_page *ring, void *record, size_t room)
{
	uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE), at = ring->data_tail;
	struct perf_event_header header;

	if (head - at < sizeof(header))
		return 0;
	copy(ring, at, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size > head - at || header.size > room) {
		__atomic_store_n(&ring->data_tail, head, __ATOMIC_RELEASE);
		return 0;
	}
	copy(ring, at, record, header.size);
	__atomic_store_n(&ring->data_tail, at + header.size, __ATOMIC_RELEASE);
	return header.size;
}
