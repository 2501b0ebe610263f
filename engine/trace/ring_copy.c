// SPDX-License-Identifier: MIT
#include "trace/ring_copy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpuset.h"
#include "base/memory.h"
#include "trace/instance.h"
#include "trace/page.h"

#define CPUS_MAX 1024
#define HELD_MIN 64    /* pages of a CPU that are read again; page faults can fill 16 in a ms */
#define HELD_PART 4    /* ... and at least this part of a larger ring, for an engine that comes late */
#define ROOM_PAGES 512 /* memory for copies, plus this much for each CPU: */
#define ROOM_PAGES_CPU 16
#define READS_MAX (1U << 18) /* the most pages of one CPU: a CPU that writes faster is left */

struct ring {
	int fd;
	unsigned char *slots;
	struct ring_page *held;
	unsigned int next, count; /* the slot to read into; how many pages are held */
};

static struct {
	struct ring *rings;
	int cpus[CPUS_MAX];
	unsigned int ring_count, held;
	size_t page_size, data_offset;

	unsigned char *room;
	struct ring_page *pages;
	unsigned int page_count, pages_max;
	bool cut;
} copy;

static bool open_rings(int instance)
{
	struct cpuset online;

	if (!cpuset_online(&online))
		cpuset_allowed(&online);
	copy.rings = memory_get(cpuset_count(&online) * sizeof(*copy.rings));
	if (!copy.rings)
		return false;
	for (int cpu = cpuset_next(&online, 0); cpu >= 0 && copy.ring_count < CPUS_MAX;
	     cpu = cpuset_next(&online, (unsigned int)cpu + 1)) {
		struct ring *ring = &copy.rings[copy.ring_count];

		ring->fd = trace_ring_open(instance, cpu);
		if (ring->fd < 0)
			return false;
		copy.cpus[copy.ring_count++] = cpu;
		ring->slots = memory_get(copy.held * copy.page_size);
		ring->held = memory_get(copy.held * sizeof(*ring->held));
		if (!ring->slots || !ring->held) {
			errno = ENOMEM;
			return false;
		}
	}
	return true;
}

bool ring_copy_open(int instance, size_t page_size, size_t data_offset, size_t ring_size)
{
	size_t held = ring_size / page_size / HELD_PART;

	copy.held = (unsigned int)(held > HELD_MIN ? held : HELD_MIN);
	copy.page_size = page_size;
	copy.data_offset = data_offset;
	if (!open_rings(instance))
		return false;
	copy.pages_max = ROOM_PAGES + ROOM_PAGES_CPU * copy.ring_count;
	copy.pages = memory_get(copy.pages_max * sizeof(*copy.pages));
	copy.room = memory_get(copy.pages_max * page_size);
	if (!copy.pages || !copy.room)
		errno = ENOMEM;
	return copy.pages && copy.room;
}

unsigned int ring_copy_cpus(const int **cpus)
{
	*cpus = copy.cpus;
	return copy.ring_count;
}

static void keep(const struct ring_page *page)
{
	unsigned char *bytes = copy.room + copy.page_count * copy.page_size;

	if (copy.page_count == copy.pages_max) {
		copy.cut = true;
		return;
	}
	memcpy(bytes, page->bytes, page->len);
	copy.pages[copy.page_count] = *page;
	copy.pages[copy.page_count++].bytes = bytes;
}

/* For a page whose end is known. */
static void choose(const struct ring_page *page, const struct ring_window *windows, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		if (page->first_ns <= windows[i].to_ns && page->until_ns >= windows[i].from_ns) {
			keep(page);
			return;
		}
	}
}

/* Reads the next page into a slot of the ring. Returns false if there is no page. */
static bool read_page(struct ring *ring, int cpu)
{
	unsigned char *bytes = ring->slots + ring->next * copy.page_size;
	struct trace_page page;
	ssize_t got;

	do {
		got = read(ring->fd, bytes, copy.page_size);
		if (got <= 0)
			return false;
	} while (!trace_page_open(&page, bytes, (size_t)got, copy.data_offset) || page.at == page.end);
	ring->held[ring->next] = (struct ring_page){
		.cpu = cpu,
		.first_ns = (int64_t)page.time_ns,
		.dropped = page.dropped,
		.dropped_count = page.dropped_count,
		.len = (size_t)(page.end - bytes),
		.bytes = bytes,
	};
	ring->next = (ring->next + 1) % copy.held;
	if (ring->count < copy.held)
		ring->count++;
	return true;
}

static int64_t last_event_ns(const struct ring_page *page)
{
	struct trace_page events;
	int64_t time_ns = page->first_ns;
	size_t len;

	if (trace_page_open(&events, page->bytes, page->len, copy.data_offset)) {
		while (trace_page_next(&events, &time_ns, &len))
			;
	}
	return time_ns;
}

static void take_ring(struct ring *ring, int cpu, const struct ring_window *windows, unsigned int count)
{
	struct ring_page *last = NULL;
	unsigned int reads = 0;

	for (unsigned int i = 0; i < ring->count; i++)
		choose(&ring->held[(ring->next + copy.held - ring->count + i) % copy.held], windows, count);
	while (reads++ < READS_MAX && read_page(ring, cpu)) {
		struct ring_page *page = &ring->held[(ring->next + copy.held - 1) % copy.held];

		if (last) {
			last->until_ns = page->dropped ? last_event_ns(last) : page->first_ns;
			choose(last, windows, count);
		}
		last = page;
	}
	if (last) {
		last->until_ns = clock_now_ns(CLOCK_MONOTONIC);
		choose(last, windows, count);
	}
}

unsigned int ring_copy_take(const struct ring_window *windows, unsigned int count,
			    const struct ring_page **pages, bool *cut)
{
	copy.page_count = 0;
	copy.cut = false;
	for (unsigned int i = 0; i < copy.ring_count; i++)
		take_ring(&copy.rings[i], copy.cpus[i], windows, count);
	*pages = copy.pages;
	*cut = copy.cut;
	return copy.page_count;
}

void ring_copy_close(void)
{
	for (unsigned int i = 0; i < copy.ring_count; i++) {
		close(copy.rings[i].fd);
		free(copy.rings[i].slots);
		free(copy.rings[i].held);
	}
	copy.ring_count = 0;
	free(copy.rings);
	free(copy.pages);
	free(copy.room);
}
