// SPDX-License-Identifier: MIT
#include "trace/ring_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "trace/instance.h"

#define CPUS_MAX 1024
#define READS_MAX (1U << 18) /* the most pages of one CPU: a CPU that writes faster is left */

static struct {
	struct page_store *stores;
	int cpus[CPUS_MAX], rings[CPUS_MAX];
	unsigned int count;
	bool shared;
	struct ring_page *pages;
} copy;

/* Gets the memory for the list of pages. */
static bool get_list(void)
{
	size_t max = 0;

	for (unsigned int i = 0; i < copy.count; i++) {
		copy.cpus[i] = copy.stores[i].cpu;
		max += copy.stores[i].max;
	}
	copy.pages = memory_get(max * sizeof(*copy.pages));
	if (!copy.pages)
		errno = ENOMEM;
	return copy.pages;
}

bool ring_copy_open(int instance, size_t page_size, size_t data_offset, size_t ring_size)
{
	struct cpuset cpus;

	trace_cpus(&cpus);
	copy.stores = memory_get(cpuset_count(&cpus) * sizeof(*copy.stores));
	errno = ENOMEM;
	if (!copy.stores)
		return false;
	for (int cpu = cpuset_next(&cpus, 0); cpu >= 0 && copy.count < CPUS_MAX;
	     cpu = cpuset_next(&cpus, (unsigned int)cpu + 1)) {
		copy.rings[copy.count] = trace_ring_open(instance, cpu);
		if (copy.rings[copy.count] < 0)
			return false;
		if (!page_store_open(&copy.stores[copy.count++], cpu, ring_size, page_size, data_offset))
			return false;
	}
	return get_list();
}

bool ring_copy_share(struct page_store *stores, unsigned int count)
{
	copy.stores = stores;
	copy.count = count < CPUS_MAX ? count : CPUS_MAX;
	copy.shared = true;
	return get_list();
}

unsigned int ring_copy_cpus(const int **cpus)
{
	*cpus = copy.cpus;
	return copy.count;
}

static void read_ring(unsigned int ring)
{
	struct trace_page page;
	unsigned int reads = 0;

	while (reads++ < READS_MAX && page_store_read(&copy.stores[ring], copy.rings[ring], &page))
		;
}

unsigned int ring_copy_take(const struct ring_window *windows, unsigned int count,
			    const struct ring_page **pages)
{
	unsigned int taken = 0;

	for (unsigned int i = 0; i < copy.count; i++) {
		if (!copy.shared)
			read_ring(i);
		taken += page_store_choose(&copy.stores[i], windows, count, copy.pages + taken);
	}
	*pages = copy.pages;
	return taken;
}

void ring_copy_close(void)
{
	for (unsigned int i = 0; i < copy.count && !copy.shared; i++) {
		close(copy.rings[i]);
		page_store_close(&copy.stores[i]);
	}
	if (!copy.shared)
		free(copy.stores);
	free(copy.pages);
	copy.stores = NULL;
	copy.pages = NULL;
	copy.count = 0;
	copy.shared = false;
}
