// SPDX-License-Identifier: MIT
#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/tracefs.h"
#include "trace/instance.h"
#include "trace/page.h"

#define PAGE_MAX 65536

static bool open_rings(struct trace_reader *reader)
{
	struct cpuset cpus;

	trace_cpus(&cpus);
	for (int cpu = cpuset_next(&cpus, 0); cpu >= 0 && reader->ring_count < TRACE_CPUS_MAX;
	     cpu = cpuset_next(&cpus, (unsigned int)cpu + 1)) {
		int ring = trace_ring_open(reader->instance, cpu);

		if (ring < 0)
			return false;
		reader->cpus[reader->ring_count] = cpu;
		reader->rings[reader->ring_count++] = ring;
	}
	return true;
}

static bool read_layout(struct trace_reader *reader, int root)
{
	char text[TRACE_TEXT_MAX];
	struct trace_field data;

	if (!trace_read(root, "events/header_page", text) || !trace_find_field(text, "data", &data))
		return false;
	reader->data_offset = data.offset;
	reader->page_size = data.offset + data.size;
	return true;
}

const char *trace_reader_open(struct trace_reader *reader, const char *instance, const char *buffer_kb)
{
	int root = tracefs_open();
	const char *lacks = NULL;
	int error;

	if (root < 0)
		return "tracefs";
	reader->instance = trace_instance_open(root, instance);
	if (reader->instance < 0)
		lacks = instance;
	else if (!read_layout(reader, root))
		lacks = "events/header_page";
	error = errno;
	close(root);
	errno = error;
	if (lacks)
		return lacks;
	reader->page = memory_get(PAGE_MAX);
	if (!reader->page)
		return "memory";
	if (!trace_write(reader->instance, "trace_clock", "mono"))
		return "trace_clock";
	/* A new instance has its root's; if it is off, no page says that events before it were dropped. */
	trace_write(reader->instance, "options/overwrite", "1");
	trace_write(reader->instance, "buffer_size_kb", buffer_kb); /* if refused, the default size is kept */
	return open_rings(reader) ? NULL : "trace_pipe_raw";
}

bool trace_reader_keep(struct trace_reader *reader, size_t bytes)
{
	struct page_store *stores = memory_get(reader->ring_count * sizeof(*stores));
	bool opened = stores && reader->page_size <= PAGE_MAX;

	for (unsigned int i = 0; opened && i < reader->ring_count; i++)
		opened = page_store_open(&stores[i], reader->cpus[i], bytes, reader->page_size,
					 reader->data_offset);
	reader->stores = opened ? stores : NULL;
	if (opened)
		return true;
	for (unsigned int i = 0; stores && i < reader->ring_count; i++)
		page_store_close(&stores[i]);
	free(stores);
	errno = ENOMEM;
	return false;
}

/* Reads the next page. Returns false if there is none. */
static bool read_page(struct trace_reader *reader, unsigned int ring, struct trace_page *page)
{
	ssize_t got;

	if (reader->stores)
		return page_store_read(&reader->stores[ring], reader->rings[ring], page);
	do {
		got = read(reader->rings[ring], reader->page, PAGE_MAX);
		if (got <= 0)
			return false;
	} while (!trace_page_open(page, reader->page, (size_t)got, reader->data_offset));
	return true;
}

/* Returns whether the ring may hold more. */
static bool take_ring(struct trace_reader *reader, unsigned int ring, size_t bytes,
		      void (*take)(void *user, const unsigned char *record, size_t len, int64_t time_ns,
				   int cpu),
		      void *user)
{
	const unsigned char *record;
	struct trace_page page;
	size_t taken = 0, len;
	int64_t time_ns;

	while (taken < bytes) {
		if (!read_page(reader, ring, &page))
			return false;
		taken += reader->page_size;
		reader->dropped |= page.dropped;
		if (page.dropped)
			take(user, NULL, 0, (int64_t)page.time_ns, reader->cpus[ring]);
		while ((record = trace_page_next(&page, &time_ns, &len))) {
			take(user, record, len, time_ns, reader->cpus[ring]);
			reader->reached_ns[ring] = time_ns;
		}
	}
	return true;
}

int64_t trace_reader_take(struct trace_reader *reader, size_t bytes,
			  void (*take)(void *user, const unsigned char *record, size_t len, int64_t time_ns,
				       int cpu),
			  void *user)
{
	int64_t until_ns = INT64_MAX;

	for (unsigned int i = 0; i < reader->ring_count; i++) {
		if (!reader->left[i] || reader->reached_ns[i] <= reader->until_ns)
			reader->left[i] = take_ring(reader, i, bytes, take, user);
		if (reader->left[i] && reader->reached_ns[i] < until_ns)
			until_ns = reader->reached_ns[i];
	}
	reader->until_ns = until_ns;
	return until_ns;
}

void trace_reader_close(struct trace_reader *reader)
{
	for (unsigned int i = 0; i < reader->ring_count; i++)
		close(reader->rings[i]);
	reader->ring_count = 0;
}
