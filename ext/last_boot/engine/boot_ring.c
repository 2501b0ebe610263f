// SPDX-License-Identifier: MIT
#include "ext/last_boot/engine/boot_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpuset.h"
#include "base/tracefs.h"
#include "trace/page.h"

#define PARAMETER "trace_instance="
#define CPU_BYTES_MAX (2U << 20) /* of the chosen pages of a CPU, */
#define BYTES_MAX (32U << 20)	 /* and of all CPUs */
#define PAGES_MAX (1U << 18)	 /* of a CPU: the ring of a kernel that still records would not end */

bool boot_ring_named(const char *cmdline, char name[TRACE_NAME_MAX])
{
	for (const char *at = cmdline; (at = strstr(at, PARAMETER)); at += strlen(PARAMETER)) {
		const char *value = at + strlen(PARAMETER);
		size_t word = strcspn(value, " \t\n"), events = strcspn(value, ", \t\n"),
		       len = strcspn(value, "^@=, \t\n");

		if ((at != cmdline && !strchr(" \t\n", at[-1])) || !word || len >= TRACE_NAME_MAX ||
		    !memchr(value, '@', events))
			continue;
		memcpy(name, value, len);
		name[len] = '\0';
		if (tracefs_is_name(name))
			return true;
	}
	return false;
}

/* Walks through the page's events. */
static void look_at(struct boot_page *found, const struct boot_rings *rings)
{
	struct trace_page page;
	const unsigned char *record;
	size_t len;
	uint16_t id;

	found->last_ns = found->first_ns;
	if (!trace_page_open(&page, found->bytes, found->len, rings->data_offset))
		return;
	while ((record = trace_page_next(&page, &found->last_ns, &len))) {
		if (len < sizeof(id))
			continue;
		memcpy(&id, record, sizeof(id));
		found->has_message |= rings->message_id && id == rings->message_id;
		found->has_switch |= rings->switch_id && id == rings->switch_id;
	}
}

static int add_page(struct boot_ring *ring, const unsigned char *bytes, size_t got,
		    const struct boot_rings *rings)
{
	struct boot_page *more, *added;
	struct trace_page page;

	if (!trace_page_open(&page, bytes, got, rings->data_offset) || page.at == page.end)
		return 0;
	if (!(ring->count & (ring->count - 1))) { /* its room is a power of two */
		more = realloc(ring->pages, (ring->count ? 2 * ring->count : 1) * sizeof(*more));
		if (!more)
			return ENOMEM;
		ring->pages = more;
	}
	added = &ring->pages[ring->count];
	*added = (struct boot_page){.first_ns = (int64_t)page.time_ns, .len = (size_t)(page.end - bytes)};
	added->bytes = malloc(added->len);
	if (!added->bytes)
		return ENOMEM;
	memcpy(added->bytes, bytes, added->len);
	look_at(added, rings);
	ring->count++;
	ring->last_ns = added->last_ns;
	return 0;
}

static int read_ring(struct boot_ring *ring, int instance, unsigned char *room, size_t page_size,
		     const struct boot_rings *rings)
{
	int fd = trace_ring_open(instance, ring->cpu), error = fd < 0 ? errno : 0;
	ssize_t got;

	while (!error && ring->count < PAGES_MAX && (got = read(fd, room, page_size)) > 0)
		error = add_page(ring, room, (size_t)got, rings);
	if (fd >= 0)
		close(fd);
	return error;
}

int boot_rings_read(struct boot_rings *rings, int instance, size_t page_size)
{
	unsigned char *room = malloc(page_size);
	struct cpuset online;
	int error = 0;

	if (!cpuset_online(&online))
		cpuset_allowed(&online);
	rings->rings = calloc((size_t)cpuset_count(&online), sizeof(*rings->rings));
	if (!room || !rings->rings)
		error = ENOMEM;
	for (int cpu = cpuset_next(&online, 0); cpu >= 0 && !error;
	     cpu = cpuset_next(&online, (unsigned int)cpu + 1)) {
		rings->rings[rings->count].cpu = cpu;
		error = read_ring(&rings->rings[rings->count++], instance, room, page_size, rings);
	}
	free(room);
	return error;
}

static bool is_wanted(const struct boot_rings *rings, const struct boot_page *page, int64_t before_ns)
{
	for (size_t i = 0; i < rings->count; i++) {
		int64_t until_ns = rings->rings[i].last_ns;

		if (rings->rings[i].count && page->first_ns <= until_ns &&
		    page->last_ns >= until_ns - before_ns)
			return true;
	}
	return false;
}

static void drop(struct boot_page *page)
{
	free(page->bytes);
	page->bytes = NULL;
}

void boot_rings_choose(struct boot_rings *rings, int64_t before_ns)
{
	size_t share = BYTES_MAX / (rings->count ? rings->count : 1);
	size_t most = share < CPU_BYTES_MAX ? share : CPU_BYTES_MAX;

	for (size_t i = 0; i < rings->count; i++) {
		struct boot_ring *ring = &rings->rings[i];
		bool switched = false;
		size_t bytes = 0;

		for (size_t at = ring->count; at-- > 0;) {
			struct boot_page *page = &ring->pages[at];
			bool is_last = page->has_switch && !switched;
			bool wanted = is_last || page->has_message || is_wanted(rings, page, before_ns);

			switched |= page->has_switch;
			if (wanted && bytes + page->len <= most) {
				bytes += page->len;
				continue;
			}
			drop(page);
			ring->left_out += wanted;
		}
	}
}

void boot_rings_json(const struct boot_rings *rings, struct json *j)
{
	for (size_t i = 0; i < rings->count; i++) {
		const struct boot_ring *ring = &rings->rings[i];

		json_open(j, NULL, '{');
		json_str(j, "type", "ring");
		json_int(j, "cpu", ring->cpu);
		json_int(j, "last_ns", ring->last_ns);
		json_uint(j, "pages_left_out", ring->left_out);
		json_open(j, "pages", '[');
		for (size_t at = 0; at < ring->count; at++) {
			if (ring->pages[at].bytes)
				json_base64(j, NULL, ring->pages[at].bytes, ring->pages[at].len);
		}
		json_close(j, ']');
		json_close(j, '}');
		json_line(j);
	}
}

void boot_rings_free(struct boot_rings *rings)
{
	for (size_t i = 0; i < rings->count; i++) {
		for (size_t at = 0; at < rings->rings[i].count; at++)
			drop(&rings->rings[i].pages[at]);
		free(rings->rings[i].pages);
	}
	free(rings->rings);
}
