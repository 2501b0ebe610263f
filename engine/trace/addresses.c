// SPDX-License-Identifier: MIT
#include "trace/addresses.h"

#include <stdlib.h>
#include <string.h>

#include "trace/instance.h"
#include "trace/page.h"

#define OFFSET_BYTES 4

void addresses_add(struct addresses *addresses, const char *format)
{
	static const char *const names[] = {"function",	   "func",	  "callback", "callsite",
					    "caller_offs", "parent_offs", "ip"};
	unsigned int count = 0;

	if (addresses->count == TRACE_EVENTS_MAX)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && count < ADDRESSES_FIELDS; i++) {
		struct trace_field field;

		if (!trace_find_field(format, names[i], &field) || field.offset > UINT16_MAX ||
		    (field.size != sizeof(void *) && field.size != OFFSET_BYTES))
			continue;
		addresses->events[addresses->count].fields[count].offset = (uint16_t)field.offset;
		addresses->events[addresses->count].fields[count++].size = (uint16_t)field.size;
	}
	addresses->events[addresses->count].id = trace_event_id(format);
	addresses->events[addresses->count].field_count = count;
	addresses->count += count > 0;
}

bool addresses_add_stack(struct addresses *addresses, const char *format)
{
	static const char offset[] = ";\toffset:";
	const char *caller = strstr(format, " caller["); /* of as many entries as this kernel keeps */

	caller = caller ? strstr(caller, offset) : NULL;
	if (!caller)
		return false;
	addresses->stack_id = trace_event_id(format);
	addresses->stack_offset = strtoul(caller + strlen(offset), NULL, 10);
	return addresses->stack_id;
}

static void collect_stack(size_t offset, const unsigned char *record, size_t len, struct symbols *symbols)
{
	uintptr_t address;

	for (; offset < len && sizeof(address) <= len - offset; offset += sizeof(address)) {
		memcpy(&address, record + offset, sizeof(address));
		symbols_want(symbols, address);
	}
}

/* If pointers have 4 bytes too, as on armhf, a field of 4 bytes is a pointer. */
static bool is_offset(size_t size)
{
	return size == OFFSET_BYTES && sizeof(void *) != OFFSET_BYTES;
}

bool addresses_need_text(const struct addresses *addresses)
{
	for (unsigned int i = 0; i < addresses->count; i++) {
		for (unsigned int f = 0; f < addresses->events[i].field_count; f++) {
			if (is_offset(addresses->events[i].fields[f].size))
				return true;
		}
	}
	return false;
}

static void collect(const struct addresses *addresses, unsigned int at, const unsigned char *record,
		    size_t len, struct symbols *symbols)
{
	for (unsigned int f = 0; f < addresses->events[at].field_count; f++) {
		size_t offset = addresses->events[at].fields[f].offset;
		size_t size = addresses->events[at].fields[f].size;
		uint64_t address = 0;
		int32_t distance;

		if (size > len || offset > len - size)
			continue;
		if (!is_offset(size)) {
			memcpy(&address, record + offset, size); /* all targets are little-endian */
		} else if (addresses->text) {
			memcpy(&distance, record + offset, sizeof(distance));
			address = addresses->text + (uint64_t)(int64_t)distance;
		}
		symbols_want(symbols, address);
	}
}

void addresses_collect(const struct addresses *addresses, const unsigned char *bytes, size_t len,
		       size_t data_offset, struct symbols *symbols)
{
	const unsigned char *record;
	struct trace_page page;
	int64_t time_ns;
	size_t length;

	if (!trace_page_open(&page, bytes, len, data_offset))
		return;
	while ((record = trace_page_next(&page, &time_ns, &length))) {
		uint16_t id;

		if (length < sizeof(id))
			continue;
		memcpy(&id, record, sizeof(id));
		if (addresses->stack_id && id == addresses->stack_id)
			collect_stack(addresses->stack_offset, record, length, symbols);
		for (unsigned int i = 0; i < addresses->count; i++) {
			if (addresses->events[i].id == id)
				collect(addresses, i, record, length, symbols);
		}
	}
}
