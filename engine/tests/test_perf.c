/* SPDX-License-Identifier: MIT */
/* Records in perf's ring: in order, around its end, damaged, too large for the reader. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/perf.h"

#define SIZE 64

static struct {
	struct perf_event_mmap_page page;
	char data[SIZE];
} ring;

static void begin(uint64_t at)
{
	memset(&ring, 0, sizeof(ring));
	ring.page.data_offset = offsetof(__typeof__(ring), data);
	ring.page.data_size = SIZE;
	ring.page.data_head = ring.page.data_tail = at;
}

/* Writes a record with a byte as its content, as the kernel does. */
static void write_record(uint16_t size, char content)
{
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = size};

	for (uint64_t i = 0; i < size; i++)
		ring.data[(ring.page.data_head + i) % SIZE] =
			i < sizeof(header) ? ((const char *)&header)[i] : content;
	ring.page.data_head += size;
}

static void test_records_come_in_order_around_the_end(void **state)
{
	char record[SIZE];

	(void)state;
	begin(SIZE * UINT64_C(1000) - 20); /* even the second header is around the end */
	write_record(16, 'a');
	write_record(24, 'b');
	assert_int_equal(perf_ring_next(&ring.page, record, sizeof(record)), 16);
	assert_memory_equal(record + 8, "aaaaaaaa", 8);
	assert_int_equal(perf_ring_next(&ring.page, record, sizeof(record)), 24);
	assert_memory_equal(record + 8, "bbbbbbbbbbbbbbbb", 16);
	assert_int_equal(perf_ring_next(&ring.page, record, sizeof(record)), 0);
	assert_int_equal(ring.page.data_tail, ring.page.data_head);
}

static void test_a_damaged_or_large_record_is_dropped(void **state)
{
	const uint16_t sizes[] = {0, 7, 40, 48}; /* 40: more than was written; 48: more than the reader has */
	char record[32];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		begin(8);
		write_record(48, 'a');
		ring.page.data_head = 8 + (sizes[i] == 48 ? 48 : 32);
		memcpy(ring.data + 8 + offsetof(struct perf_event_header, size), &sizes[i], sizeof(sizes[i]));
		assert_int_equal(perf_ring_next(&ring.page, record, sizeof(record)), 0);
		assert_int_equal(ring.page.data_tail, ring.page.data_head);
	}
}

static char devices[] = "/tmp/rtgauge-perf-XXXXXX";

static void put(const char *unit, const char *file, const char *text)
{
	char path[256];
	FILE *written;

	snprintf(path, sizeof(path), "%s/%s", devices, unit);
	assert_false(mkdir(path, 0755) && errno != EEXIST);
	snprintf(path, sizeof(path), "%s/%s/%s", devices, unit, file);
	written = fopen(path, "we");
	assert_non_null(written);
	fputs(text, written);
	fclose(written);
}

static int by_number(const void *a, const void *b)
{
	return (int)*(const uint32_t *)a - (int)*(const uint32_t *)b;
}

/* As Intel's hybrid processors and Arm's boards list their units. */
static void test_units_of_different_cores_are_found(void **state)
{
	struct perf_core_units units;

	(void)state;
	assert_non_null(mkdtemp(devices));
	put("cpu", "type", "4\n");
	put("uncore_imc_0", "type", "24\n");
	put("uncore_imc_0", "cpumask", "0\n");
	put("arm_dsu_0", "type", "9\n");
	put("arm_dsu_0", "cpumask", "0\n");
	put("arm_dsu_0", "associated_cpus", "0-3\n");
	assert_int_equal(perf_find_core_units(devices).count, 0);
	put("cpu_core", "type", "4\n");
	put("cpu_core", "cpus", "0-15\n");
	put("cpu_atom", "type", "10\n");
	put("cpu_atom", "cpus", "16-23\n");
	put("cpu_lowpower", "type", "11\n");
	put("cpu_lowpower", "cpus", "\n"); /* its CPUs are offline */
	units = perf_find_core_units(devices);
	assert_int_equal(units.count, 2);
	qsort(units.types, 2, sizeof(units.types[0]), by_number);
	assert_int_equal(units.types[0], 4);
	assert_int_equal(units.types[1], 10);
	for (char name[] = "more0"; name[4] < '6'; name[4]++) {
		put(name, "type", "30\n");
		put(name, "cpus", "0\n");
	}
	assert_int_equal(perf_find_core_units(devices).count, PERF_CORE_UNITS_MAX);
	assert_int_equal(perf_find_core_units("/nothing/here").count, 0);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int clean(void **state)
{
	(void)state;
	return nftw(devices, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}

static void test_an_event_names_its_unit(void **state)
{
	struct perf_event_attr attr = {0};

	(void)state;
	perf_hardware_event(PERF_COUNT_HW_INSTRUCTIONS, 10, &attr);
	assert_int_equal(attr.type, PERF_TYPE_HARDWARE);
	assert_int_equal(attr.config, UINT64_C(10) << 32 | PERF_COUNT_HW_INSTRUCTIONS);
	perf_hardware_event(PERF_COUNT_HW_INSTRUCTIONS, 0, &attr);
	assert_int_equal(attr.config, PERF_COUNT_HW_INSTRUCTIONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_come_in_order_around_the_end),
		cmocka_unit_test(test_a_damaged_or_large_record_is_dropped),
		cmocka_unit_test_teardown(test_units_of_different_cores_are_found, clean),
		cmocka_unit_test(test_an_event_names_its_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
