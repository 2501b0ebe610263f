// SPDX-License-Identifier: MIT
/* Pages of the kernel's trace buffer and their timerlat events: whatever the bytes are, records lie within
 * their page, and every activation comes after the previous one, with no release reported twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/wakeup/activations.h"
#include "trace/addresses.h"
#include "trace/instance.h"
#include "trace/page.h"
#include "trace/symbols.h"

#define DATA 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const struct timerlat_activation *over, int64_t interval_ns, int64_t *last_ns)
{
	if (over->missed < 0 || over->lost < 0)
		abort();
	/* If the base decreases, so does the next release, by less than an interval in all. */
	if (*last_ns != INT64_MIN && over->release_ns <= *last_ns - interval_ns)
		abort();
	*last_ns = over->release_ns;
}

static void page_of(const uint8_t *data, size_t size)
{
	struct timerlat_track track = {.interval_ns = 100000, .settled = true};
	int64_t last_ns = INT64_MIN;
	struct timerlat_activation over;
	const unsigned char *record;
	struct timerlat_event event;
	struct trace_page page;
	size_t len;

	if (!trace_page_open(&page, data, size, DATA))
		return;
	while ((record = trace_page_next(&page, &event.time_ns, &len))) {
		if (record < data + DATA || len > size || record + len > data + size)
			abort();
		if (len < 24)
			continue;
		memcpy(&event.number, record + 8, sizeof(event.number));
		memcpy(&event.context, record + 12, sizeof(event.context));
		memcpy(&event.latency_ns, record + 16, sizeof(event.latency_ns));
		if (timerlat_track_event(&track, &event, &over))
			look_at(&over, track.interval_ns, &last_ns);
	}
	if (timerlat_track_end(&track, &over))
		look_at(&over, track.interval_ns, &last_ns);
}

static void events_of(const uint8_t *data, size_t size)
{
	struct timerlat_track track = {.interval_ns = 1000000};
	struct timerlat_activation over;
	int64_t last_ns = INT64_MIN;
	struct timerlat_event event;

	for (size_t at = 0; at + 16 <= size; at += 16) {
		memcpy(&event.time_ns, data + at, 8);
		event.time_ns &= INT64_MAX >> (data[at] & 31);
		event.number = (uint32_t)(data[at + 8] | data[at + 9] << 8);
		event.context = data[at + 10] & 3;
		event.latency_ns = (int64_t)(data[at + 12] | data[at + 13] << 8 | data[at + 14] << 16);
		track.settled |= at > 256;
		if (timerlat_track_event(&track, &event, &over))
			look_at(&over, track.interval_ns, &last_ns);
	}
}

static void texts_of(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct trace_field field;

	memcpy(text, data, size);
	text[size] = '\0';
	trace_find_field(text, "data", &field);
	trace_event_id(text);
	trace_entries_known(text);
	trace_has_word(text, "timerlat");
	free(text);
}

/* Fields of any place in any event of a page, and any lines for their names. */
static void functions_of(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"function", "func", "ip", "caller_offs"};
	static struct addresses addresses;
	static struct symbols symbols;
	char format[128], *text;
	FILE *lines;

	if (size < 9)
		return;
	addresses.count = symbols.count = 0;
	addresses.text = UINT64_C(0xffffffff81000000);
	snprintf(format, sizeof(format), "ID: %u\n\tfield:x %s;\toffset:%u;\tsize:%d;\n", data[0] % 4U + 1,
		 names[data[1] % 4], (unsigned int)data[2] << (data[3] & 15), data[4] & 1 ? 4 : 8);
	addresses_add(&addresses, format);
	snprintf(format, sizeof(format), "ID: %u\n\tfield:unsigned long caller[8];\toffset:%u;\tsize:64;\n",
		 data[0] % 4U + 1, (unsigned int)data[5] << (data[3] & 15));
	addresses.stack_id = 0;
	if (data[4] & 2)
		addresses_add_stack(&addresses, format);
	addresses_need_text(&addresses);
	addresses_collect(&addresses, data + 8, size - 8, DATA, &symbols);
	for (unsigned int i = 1; i < symbols.count; i++) {
		if (symbols.address[i - 1] >= symbols.address[i])
			abort();
	}
	text = malloc(size - 8);
	memcpy(text, data + 8, size - 8);
	lines = fmemopen(text, size - 8, "r");
	if (!symbols_read(&symbols, lines))
		abort();
	for (unsigned int i = 0; i < symbols.count; i++) {
		if (symbols.base[i] > symbols.address[i])
			abort();
	}
	free(symbols.base);
	fclose(lines);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 4) {
	case 0:
		page_of(data + 1, size - 1);
		break;
	case 1:
		events_of(data + 1, size - 1);
		break;
	case 2:
		functions_of(data + 1, size - 1);
		break;
	default:
		texts_of(data + 1, size - 1);
	}
	return 0;
}
