/* SPDX-License-Identifier: MIT */
#include "base/perf.h"

#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MSR PERF_DEVICES "/msr/"
#define UNIT_SHIFT 32 /* PERF_PMU_TYPE_SHIFT, since 5.13 */

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

struct perf_core_units perf_find_core_units(const char *devices)
{
	struct perf_core_units units = {0};
	DIR *dir = opendir(devices);
	struct dirent *entry;

	while (dir && units.count < PERF_CORE_UNITS_MAX && (entry = readdir(dir))) {
		char path[PATH_MAX];
		unsigned int first, type;

		snprintf(path, sizeof(path), "%s/%s/cpus", devices, entry->d_name);
		if (!read_number(path, "%u", &first)) /* empty if none of its CPUs is online */
			continue;
		snprintf(path, sizeof(path), "%s/%s/type", devices, entry->d_name);
		if (read_number(path, "%u", &type))
			units.types[units.count++] = type;
	}
	if (dir)
		closedir(dir);
	return units;
}

void perf_hardware_event(uint64_t hardware, uint32_t unit, struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_HARDWARE;
	attr->config = hardware;
#if defined(__aarch64__) || defined(__arm__)
	if (hardware == PERF_COUNT_HW_CACHE_MISSES) { /* there, of the first level */
		attr->type = PERF_TYPE_HW_CACHE;
		attr->config = PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8 |
			       PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
	}
#endif
	attr->config |= (uint64_t)unit << UNIT_SHIFT;
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
