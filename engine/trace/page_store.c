// SPDX-License-Identifier: MIT
#include "trace/page_store.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define MORE_PAGES 64	  /* than the ring has: some come while it is read; page faults can fill 16 in a ms */
#define MORE_PART 4	  /* ... and at least this part of a larger ring, for an engine that comes late */
#define PARTS_OF_A_PAGE 4 /* a page that is read before it is full takes less room */

bool page_store_open(struct page_store *store, int cpu, size_t size, size_t page_size, size_t data_offset)
{
	size_t pages = page_size ? size / page_size : 0;

	pages += pages / MORE_PART > MORE_PAGES ? pages / MORE_PART : MORE_PAGES;
	*store = (struct page_store){.cpu = cpu,
				     .size = pages * page_size,
				     .page_size = page_size,
				     .data_offset = data_offset,
				     .max = (unsigned int)pages * PARTS_OF_A_PAGE};
	store->bytes = memory_get(store->size);
	store->pages = memory_get(store->max * sizeof(*store->pages));
	if (!store->bytes || !store->pages)
		errno = ENOMEM;
	return store->bytes && store->pages;
}

/* The place of the page that is `number` after the oldest. */
static unsigned int place(const struct page_store *store, unsigned int number)
{
	unsigned int at = store->first + number;

	return at < store->max ? at : at - store->max;
}

static void drop_oldest(struct page_store *store)
{
	store->first = place(store, 1);
	store->count--;
	store->full = true;
}

/* Makes room for a whole page at store->at. Pages behind it are from the round before, the oldest first. */
static unsigned char *make_room(struct page_store *store)
{
	const unsigned char *end = store->bytes + store->size;
	bool wraps = store->at + store->page_size > store->size;

	if (!wraps)
		end = store->bytes + store->at + store->page_size;
	while (store->count && store->pages[store->first].bytes >= store->bytes + store->at &&
	       store->pages[store->first].bytes < end)
		drop_oldest(store);
	if (wraps) {
		store->at = 0;
		return make_room(store);
	}
	if (store->count == store->max)
		drop_oldest(store);
	return store->bytes + store->at;
}

static int64_t last_event_ns(const struct page_store *store, const struct ring_page *page)
{
	struct trace_page events;
	int64_t time_ns = page->first_ns;
	size_t len;

	if (trace_page_open(&events, page->bytes, page->len, store->data_offset)) {
		while (trace_page_next(&events, &time_ns, &len))
			;
	}
	return time_ns;
}

bool page_store_read(struct page_store *store, int ring, struct trace_page *page)
{
	struct ring_page *pages = store->pages, *before;
	int64_t began_ns = clock_now_ns(CLOCK_MONOTONIC);
	unsigned char *bytes;
	ssize_t got;

	if (!pages)
		return false;
	bytes = make_room(store);
	before = store->count ? &pages[place(store, store->count - 1)] : NULL;
	do {
		got = read(ring, bytes, store->page_size);
		if (got <= 0 && before && before->until_ns < began_ns)
			before->until_ns = began_ns; /* nothing came after it yet */
		if (got <= 0)
			return false;
	} while (!trace_page_open(page, bytes, (size_t)got, store->data_offset) || page->at == page->end);
	if (before)
		before->until_ns = page->dropped ? last_event_ns(store, before) : (int64_t)page->time_ns;
	pages[place(store, store->count++)] = (struct ring_page){
		.cpu = store->cpu,
		.first_ns = (int64_t)page->time_ns,
		.until_ns = clock_now_ns(CLOCK_MONOTONIC),
		.dropped = page->dropped,
		.dropped_count = page->dropped_count,
		.len = (size_t)(page->end - bytes),
		.bytes = bytes,
	};
	store->at += ((size_t)(page->end - bytes) + 7) & ~(size_t)7;
	return true;
}

unsigned int page_store_choose(const struct page_store *store, const struct ring_window *windows,
			       unsigned int count, struct ring_page *room)
{
	unsigned int chosen = 0;

	for (unsigned int i = 0; i < store->count; i++) {
		const struct ring_page *page = &store->pages[place(store, i)];
		unsigned int w = 0;

		while (w < count &&
		       (page->first_ns > windows[w].to_ns || page->until_ns < windows[w].from_ns))
			w++;
		if (w == count)
			continue;
		room[chosen] = *page;
		if (!i && store->full)
			room[chosen].dropped = true;
		chosen++;
	}
	return chosen;
}

void page_store_close(struct page_store *store)
{
	free(store->bytes);
	free(store->pages);
	*store = (struct page_store){0};
}
