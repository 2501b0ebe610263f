// SPDX-License-Identifier: MIT
/* The explanation of a latency: its events, its pages of the rings, names of functions. Folders of files
 * replace tracefs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpuset.h"
#include "harness/explain_cost.h"
#include "tests/check.h"
#include "tests/cm.h"
#include "trace/addresses.h"
#include "trace/events.h"
#include "trace/instance.h"
#include "trace/ring_copy.h"
#include "trace/symbols.h"

#define PAGE 4096
#define DATA 16

struct folder {
	char path[64];
	int fd;
};

static void make_folder(struct folder *folder)
{
	snprintf(folder->path, sizeof(folder->path), "/tmp/rtgauge-test-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY);
	assert_true(folder->fd >= 0);
}

static void remove_folder(struct folder *folder)
{
	char command[96];

	close(folder->fd);
	snprintf(command, sizeof(command), "rm -r %s", folder->path);
	assert_int_equal(system(command), 0);
}

/* Makes it with its parent folders. */
static void write_file(const struct folder *folder, const char *path, const void *bytes, size_t len)
{
	char part[128];
	int fd;

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		mkdirat(folder->fd, part, 0700);
	}
	fd = openat(folder->fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

static void events_are_found_by_name_group_and_ending(void **state)
{
	static const char *const there[] = {"sched/sched_switch", "sched/sched_waking", "irq_vectors/a_entry",
					    "irq_vectors/a_exit", "irq_vectors/vector_alloc"};
	char *names[TRACE_EVENTS_MAX], path[96];
	struct folder folder;

	(void)state;
	make_folder(&folder);
	for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
		snprintf(path, sizeof(path), "events/%s/format", there[i]);
		write_file(&folder, path, "", 0);
	}
	write_file(&folder, "events/sched/enable", "", 0);
	assert_int_equal(
		trace_events_find(folder.fd, "sched/sched_switch,sched/none,none,sched/sched_switch,", names),
		1);
	assert_string_equal(names[0], "sched/sched_switch");
	free(names[0]);
	assert_int_equal(trace_events_find(folder.fd, "irq_vectors/*_entry", names), 1);
	assert_string_equal(names[0], "irq_vectors/a_entry");
	free(names[0]);
	assert_int_equal(trace_events_find(folder.fd, "sched", names), 2);
	free(names[0]);
	free(names[1]);
	assert_int_equal(
		trace_events_find(folder.fd, ",,../events/sched,sched/../sched/sched_switch,.", names), 0);
	remove_folder(&folder);
}

/* A page with one event of 8 bytes. */
static void make_page(unsigned char *page, int64_t time_ns, uint32_t flags)
{
	uint32_t commit = 12U | flags, head = 2;

	memset(page, 0, PAGE);
	memcpy(page, &time_ns, sizeof(time_ns));
	memcpy(page + 8, &commit, sizeof(commit));
	memcpy(page + DATA, &head, sizeof(head));
}

static void write_ring(const struct folder *folder, int cpu, const int64_t *times_ns, int count,
		       uint32_t flags)
{
	unsigned char *pages = malloc((size_t)count * PAGE + !count);
	char path[64];

	for (int i = 0; i < count; i++)
		make_page(pages + (size_t)i * PAGE, times_ns[i], i ? 0 : flags);
	snprintf(path, sizeof(path), "per_cpu/cpu%d/trace_pipe_raw", cpu);
	write_file(folder, path, pages, (size_t)count * PAGE);
	free(pages);
}

static void pages_that_overlap_a_window_are_copied(void **state)
{
	const int64_t times_ns[] = {1000, 2000, 3000, 4000, 5000, 6000, 7000};
	const struct ring_window windows[] = {{2500, 3500}, {100, 900}}, late = {6500, 7100};
	const struct ring_page *pages;
	const int *cpus;
	struct cpuset with_rings;
	struct folder folder;
	unsigned int count;

	(void)state;
	make_folder(&folder);
	trace_cpus(&with_rings);
	for (int cpu = cpuset_next(&with_rings, 0); cpu >= 0;
	     cpu = cpuset_next(&with_rings, (unsigned int)cpu + 1))
		write_ring(&folder, cpu, times_ns, 7, 1U << 31);
	assert_true(ring_copy_open(folder.fd, PAGE, DATA, PAGE));
	assert_int_equal(ring_copy_cpus(&cpus), cpuset_count(&with_rings));
	count = ring_copy_take(windows, 2, &pages);
	assert_int_equal(count, 2 * cpuset_count(&with_rings));
	assert_int_equal(pages[0].cpu, cpus[0]);
	assert_int_equal(pages[0].first_ns, 2000);
	assert_int_equal(pages[0].until_ns, 3000);
	assert_false(pages[0].dropped);
	assert_int_equal(pages[0].len, DATA + 12);
	assert_int_equal(pages[1].first_ns, 3000);
	/* They are read again: the newest are still known. */
	count = ring_copy_take(&late, 1, &pages);
	assert_int_equal(count, 2 * cpuset_count(&with_rings));
	assert_int_equal(pages[0].first_ns, 6000);
	assert_int_equal(pages[1].first_ns, 7000);
	ring_copy_close();
	remove_folder(&folder);
}

static int offline_cpu = -1; /* present on this machine, if it is one */

bool __real_cpuset_present(struct cpuset *set);
bool __wrap_cpuset_present(struct cpuset *set);

bool __wrap_cpuset_present(struct cpuset *set)
{
	bool known = __real_cpuset_present(set);

	if (offline_cpu >= 0)
		cpuset_add(set, (unsigned int)offline_cpu);
	return known;
}

static void a_cpu_that_comes_online_later_has_its_ring(void **state)
{
	const int64_t times_ns[] = {1000};
	const struct ring_window all = {0, INT64_MAX};
	const struct ring_page *pages;
	const int *cpus;
	struct cpuset rings;
	struct folder folder;
	unsigned int count;

	(void)state;
	make_folder(&folder);
	offline_cpu = 900;
	trace_cpus(&rings);
	assert_true(cpuset_has(&rings, 900));
	for (int cpu = cpuset_next(&rings, 0); cpu >= 0; cpu = cpuset_next(&rings, (unsigned int)cpu + 1))
		write_ring(&folder, cpu, times_ns, cpu != 900, 0);
	assert_true(ring_copy_open(folder.fd, PAGE, DATA, PAGE));
	count = ring_copy_cpus(&cpus);
	assert_int_equal(count, cpuset_count(&rings));
	assert_int_equal(cpus[count - 1], 900);
	assert_int_equal(ring_copy_take(&all, 1, &pages), count - 1);
	write_ring(&folder, 900, times_ns, 1, 0);
	assert_int_equal(ring_copy_take(&all, 1, &pages), count);
	assert_int_equal(pages[count - 1].cpu, 900);
	ring_copy_close();
	remove_folder(&folder);
	offline_cpu = -1;
}

/* No page has what the kernel overwrote: the page before ends with its last event. */
static void a_page_before_a_gap_does_not_reach_over_it(void **state)
{
	const int64_t before_ns = 1000, after_ns = 9000;
	const struct ring_window early = {900, 1100}, within = {5000, 6000};
	const struct ring_page *pages;
	struct cpuset with_rings;
	struct folder folder;

	(void)state;
	make_folder(&folder);
	trace_cpus(&with_rings);
	for (int cpu = cpuset_next(&with_rings, 0); cpu >= 0;
	     cpu = cpuset_next(&with_rings, (unsigned int)cpu + 1)) {
		unsigned char both[2 * PAGE];
		char path[64];

		make_page(both, before_ns, 0);
		make_page(both + PAGE, after_ns, 1U << 31);
		snprintf(path, sizeof(path), "per_cpu/cpu%d/trace_pipe_raw", cpu);
		write_file(&folder, path, both, sizeof(both));
	}
	assert_true(ring_copy_open(folder.fd, PAGE, DATA, PAGE));
	assert_int_equal(ring_copy_take(&within, 1, &pages), 0);
	assert_int_equal(ring_copy_take(&early, 1, &pages), cpuset_count(&with_rings));
	assert_in_range(pages[0].until_ns, 1000, 1100);
	ring_copy_close();
	remove_folder(&folder);
}

static void names_are_those_of_the_function_that_an_address_is_in(void **state)
{
	static char lines[] = "0000000000000000 A fixed_percpu_data\n"
			      "ffff000000001000 T first\n"
			      "ffff000000002000 d data\n"
			      "ffff000000001800 t second\n"
			      "ffff0000ff000000 t of_module\t[module]\n"
			      "no line\n"
			      "ffff000000003000 T \n";
	static struct symbols symbols;
	struct json j;
	char *out = NULL;
	size_t size = 0;
	FILE *in = fmemopen(lines, strlen(lines), "r"), *stream = open_memstream(&out, &size);

	(void)state;
	symbols_want(&symbols, UINT64_C(0xffff000000001000));
	symbols_want(&symbols, UINT64_C(0xffff000000002004));
	symbols_want(&symbols, UINT64_C(0xffff000000002004));
	symbols_want(&symbols, UINT64_C(0xffff0000ff000001));
	symbols_want(&symbols, UINT64_C(0x1234));
	symbols_want(&symbols, UINT64_C(0xffffffffffffffff));
	symbols_want(&symbols, 0);
	assert_int_equal(symbols.count, 5);
	assert_true(symbols_read(&symbols, in));
	json_start(&j, stream);
	symbols_json(&symbols, NULL, &j);
	fclose(stream);
	assert_string_equal(out, "{\"0xffff000000001000\":\"first\",\"0xffff000000002004\":\"second+0x804\","
				 "\"0xffff0000ff000001\":\"of_module+0x1\"}");
	free(out);
	free(symbols.base);
	rewind(in);
	assert_int_equal(symbols_find(in, "second"), UINT64_C(0xffff000000001800));
	rewind(in);
	assert_int_equal(symbols_find(in, "data"), 0);
	fclose(in);
}

static void addresses_are_taken_from_the_fields_that_have_them(void **state)
{
	static const char format[] = "name: x\nID: 7\nformat:\n"
				     "\tfield:void * hrtimer;\toffset:8;\tsize:8;\tsigned:0;\n"
				     "\tfield:void * function;\toffset:16;\tsize:8;\tsigned:0;\n";
	static struct addresses addresses;
	static struct symbols symbols;
	uint64_t function = UINT64_C(0xffffffff81000010);
	uint32_t commit = 28, head = 6;
	unsigned char page[64] = {0};
	uint16_t id = 7;

	(void)state;
	if (sizeof(void *) != 8)
		return;
	addresses_add(&addresses, format);
	assert_int_equal(addresses.count, 1);
	assert_false(addresses_need_text(&addresses));
	memcpy(page + 8, &commit, sizeof(commit));
	memcpy(page + DATA, &head, sizeof(head));
	memcpy(page + DATA + 4, &id, sizeof(id));
	memcpy(page + DATA + 4 + 16, &function, sizeof(function));
	addresses_collect(&addresses, page, sizeof(page), DATA, &symbols);
	assert_int_equal(symbols.count, 1);
	assert_int_equal(symbols.address[0], function);
	id = 8;
	memcpy(page + DATA + 4, &id, sizeof(id));
	symbols.count = 0;
	addresses_collect(&addresses, page, sizeof(page), DATA, &symbols);
	assert_int_equal(symbols.count, 0);
}

static int64_t switching_ns; /* in the last switch */

static void switch_slowly(bool on)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	(void)on;
	nanosleep(&pause, NULL);
	switching_ns = clock_now_ns(CLOCK_MONOTONIC);
	nanosleep(&pause, NULL);
}

static void events_count_as_on_after_the_last_switch(void **state)
{
	int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);

	(void)state;
	assert_true(explain_cost_had_events(begin_ns));
	explain_cost_begin(begin_ns, 16000, switch_slowly);
	assert_false(explain_cost_had_events(begin_ns + NS_PER_S));
	do
		explain_cost_turn();
	while (!explain_cost_had_events(INT64_MAX));
	assert_false(explain_cost_had_events(begin_ns));
	assert_false(explain_cost_had_events(switching_ns));
	assert_true(explain_cost_had_events(clock_now_ns(CLOCK_MONOTONIC) + NS_PER_S));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_count_as_on_after_the_last_switch),
		cmocka_unit_test(events_are_found_by_name_group_and_ending),
		cmocka_unit_test(pages_that_overlap_a_window_are_copied),
		cmocka_unit_test(a_cpu_that_comes_online_later_has_its_ring),
		cmocka_unit_test(a_page_before_a_gap_does_not_reach_over_it),
		cmocka_unit_test(names_are_those_of_the_function_that_an_address_is_in),
		cmocka_unit_test(addresses_are_taken_from_the_fields_that_have_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
