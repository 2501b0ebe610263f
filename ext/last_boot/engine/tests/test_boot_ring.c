// SPDX-License-Identifier: MIT
/* The name of the persistent ring, and the pages that are kept of it. */
#include <stdlib.h>
#include <string.h>

#include "ext/last_boot/engine/boot_ring.h"
#include "tests/check.h"
#include "tests/cm.h"

static void the_command_line_names_the_ring(void **state)
{
	static const struct {
		const char *cmdline, *name;
	} cases[] = {
		{"ro reserve_mem=20M:2M:trace trace_instance=boot_map@trace quiet\n", "boot_map"},
		{"trace_instance=a^traceoff^traceprintk@0x285400000:12M,sched,irq:irq_handler_entry", "a"},
		{"trace_instance=plain trace_instance=second@trace", "second"},
		{"trace_instance=plain,sched:sched_switch", NULL},
		{"trace_instance=backup=boot_map", NULL},
		{"trace_instance=../evil@trace", NULL},
		{"trace_instance=@trace", NULL},
		{"xtrace_instance=boot_map@trace", NULL},
		{"trace_instance=plain,a@b", NULL},
		{"trace_instance=", NULL},
		{"", NULL},
	};
	char name[TRACE_NAME_MAX], line[200] = "trace_instance=";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(boot_ring_named(cases[i].cmdline, name), cases[i].name != NULL);
		if (cases[i].name)
			assert_string_equal(name, cases[i].name);
	}
	memset(line + strlen(line), 'a', 100);
	strcat(line, "@trace");
	assert_false(boot_ring_named(line, name));
}

static struct boot_page page_of(int64_t first_ns, int64_t last_ns, size_t len, bool has_message)
{
	return (struct boot_page){.first_ns = first_ns,
				  .last_ns = last_ns,
				  .has_message = has_message,
				  .len = len,
				  .bytes = malloc(len)};
}

static void add(struct boot_ring *ring, struct boot_page page)
{
	ring->pages = realloc(ring->pages, (ring->count + 1) * sizeof(page));
	assert_non_null(ring->pages);
	ring->pages[ring->count++] = page;
	ring->last_ns = page.last_ns;
}

/* CPU 1 hangs at 500. */
static void what_others_did_when_a_cpu_hung_is_kept(void **state)
{
	struct boot_rings rings = {.rings = calloc(2, sizeof(struct boot_ring)), .count = 2};
	static const bool kept[] = {true, false, true, false, true};

	(void)state;
	add(&rings.rings[0], page_of(0, 99, 8, true)); /* a message of the kernel */
	add(&rings.rings[0], page_of(100, 399, 8, false));
	add(&rings.rings[0], page_of(400, 599, 8, false));
	add(&rings.rings[0], page_of(600, 8999, 8, false));
	add(&rings.rings[0], page_of(9000, 10000, 8, false));
	add(&rings.rings[1], page_of(0, 200, 8, false));
	add(&rings.rings[1], page_of(201, 250, 8, false)); /* the switch to the task that hangs */
	rings.rings[1].pages[0].has_switch = rings.rings[1].pages[1].has_switch = true;
	add(&rings.rings[1], page_of(251, 300, 8, false));
	add(&rings.rings[1], page_of(301, 500, 8, false));
	boot_rings_choose(&rings, 100);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		assert_int_equal(rings.rings[0].pages[i].bytes != NULL, kept[i]);
	assert_null(rings.rings[1].pages[0].bytes);
	assert_non_null(rings.rings[1].pages[1].bytes);
	assert_null(rings.rings[1].pages[2].bytes);
	assert_non_null(rings.rings[1].pages[3].bytes);
	assert_int_equal(rings.rings[0].left_out, 0);
	boot_rings_free(&rings);
}

static void of_too_many_pages_the_newest_are_kept(void **state)
{
	struct boot_rings rings = {.rings = calloc(1, sizeof(struct boot_ring)), .count = 1};

	(void)state;
	for (int i = 0; i < 3; i++)
		add(&rings.rings[0], page_of(i, i, 1 << 20, false));
	boot_rings_choose(&rings, 100);
	assert_null(rings.rings[0].pages[0].bytes);
	assert_non_null(rings.rings[0].pages[1].bytes);
	assert_non_null(rings.rings[0].pages[2].bytes);
	assert_int_equal(rings.rings[0].left_out, 1);
	boot_rings_free(&rings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_command_line_names_the_ring),
		cmocka_unit_test(what_others_did_when_a_cpu_hung_is_kept),
		cmocka_unit_test(of_too_many_pages_the_newest_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
