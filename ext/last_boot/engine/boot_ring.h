/* SPDX-License-Identifier: MIT */
/*
 * The kernel's persistent trace ring: an instance of tracefs in memory that a reboot leaves alone, which the
 * kernel's command line names (Documentation/trace/debugging.rst, "Persistent buffers across boots").
 */
#ifndef RTGAUGE_BOOT_RING_H
#define RTGAUGE_BOOT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "trace/instance.h"

/* Finds the first instance with its own memory on a kernel's command line: trace_instance=NAME[^FLAG]@MEMORY.
 * Returns false if there is none. */
bool boot_ring_named(const char *cmdline, char name[TRACE_NAME_MAX]);

struct boot_page {
	int64_t first_ns, last_ns; /* of its events */
	bool has_message, has_switch;
	size_t len;
	unsigned char *bytes;
};

struct boot_ring {
	int cpu;
	int64_t last_ns; /* the last event; 0: there is none */
	struct boot_page *pages;
	size_t count, left_out; /* pages, and how many wanted ones were too many */
};

struct boot_rings {
	struct boot_ring *rings;
	size_t count;
	size_t data_offset; /* of a page's events */
	/* ids of the events that have a message of the kernel, and a switch of tasks; 0: there is none */
	unsigned int message_id, switch_id;
};

/* Reads the rings of all CPUs to their ends, which empties them. The caller sets the members from
 * data_offset on.
 * Returns 0 or an errno. */
int boot_rings_read(struct boot_rings *rings, int instance, size_t page_size);

/*
 * Keeps only the pages of the last time before each CPU's last event, on this and on the other CPUs, because
 * a CPU that hangs stops recording earlier. It also keeps pages with messages, and the last switch of each
 * CPU, which has the name of the task. Of each CPU, the newest pages have priority.
 */
void boot_rings_choose(struct boot_rings *rings, int64_t before_ns);

/* Writes one line for each CPU. */
void boot_rings_json(const struct boot_rings *rings, struct json *j);

void boot_rings_free(struct boot_rings *rings);

#endif
