// SPDX-License-Identifier: MIT
#include "trace/page.h"

#include <string.h>

#define LENGTH_MASK 0xfffffU
#define MISSED_EVENTS (1U << 31)
#define MISSED_STORED (1U << 30)
#define COMMIT_OFFSET 8

enum { TYPE_LENGTH_BEHIND = 0, TYPE_PADDING = 29, TYPE_TIME_EXTEND = 30, TYPE_TIME_STAMP = 31 };

static uint32_t word(const unsigned char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* For a page before which events were dropped: how many, if the kernel had room for this number. */
static int64_t dropped_count(const unsigned char *behind, size_t left, uint32_t commit, size_t long_size)
{
	uint64_t count = 0;

	if (!(commit & MISSED_STORED) || left < long_size || long_size > sizeof(count))
		return 0;
	memcpy(&count, behind, long_size);
	return count <= INT64_MAX ? (int64_t)count : 0;
}

bool trace_page_open(struct trace_page *page, const unsigned char *bytes, size_t len, size_t data_offset)
{
	uint32_t commit;
	uint64_t time;
	size_t filled;

	if (len < data_offset || data_offset < COMMIT_OFFSET + sizeof(uint32_t))
		return false;
	memcpy(&time, bytes, sizeof(time));
	/* The counter is a long. Its lower half is enough on rtgauge's machines, which are little-endian. */
	commit = word(bytes + COMMIT_OFFSET);
	filled = commit & LENGTH_MASK;
	page->dropped = commit & MISSED_EVENTS;
	if (filled > len - data_offset)
		filled = len - data_offset;
	page->time_ns = time;
	page->at = bytes + data_offset;
	page->end = page->at + filled;
	page->dropped_count = !page->dropped ? 0
					     : dropped_count(page->end, len - data_offset - filled, commit,
							     data_offset - COMMIT_OFFSET);
	return true;
}

/* Returns the bytes after the first word of an event; 0: the page ends here. */
static size_t length_of(const struct trace_page *page, uint32_t type, uint32_t delta)
{
	size_t left = (size_t)(page->end - page->at) - 4, length;

	if (type == TYPE_PADDING && !delta)
		return 0;
	if (type != TYPE_LENGTH_BEHIND && type < TYPE_PADDING)
		length = (size_t)type * 4;
	else if (type >= TYPE_TIME_EXTEND)
		length = 4;
	else
		length = left >= 4 ? word(page->at + 4) : 0;
	return length >= 4 && length <= left ? length : 0;
}

const unsigned char *trace_page_next(struct trace_page *page, int64_t *time_ns, size_t *len)
{
	while (page->end - page->at >= 8) {
		uint32_t head = word(page->at), type = head & 31, delta = head >> 5;
		size_t length = length_of(page, type, delta);
		const unsigned char *data = page->at + 4;

		if (!length)
			break;
		page->at += 4 + ((length + 3) & ~(size_t)3);
		if (page->at > page->end)
			page->at = page->end;
		if (type == TYPE_TIME_STAMP) {
			/* Without the five upper bits. */
			uint64_t low = ((uint64_t)word(data) << 27) + delta;

			page->time_ns = (page->time_ns & ~((UINT64_C(1) << 59) - 1)) | low;
			continue;
		}
		page->time_ns += delta;
		if (type == TYPE_TIME_EXTEND)
			page->time_ns += (uint64_t)word(data) << 27;
		if (type >= TYPE_PADDING)
			continue;
		*time_ns = (int64_t)page->time_ns;
		*len = type == TYPE_LENGTH_BEHIND ? length - 4 : length;
		return type == TYPE_LENGTH_BEHIND ? data + 4 : data;
	}
	page->at = page->end;
	return NULL;
}
