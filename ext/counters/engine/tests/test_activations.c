// SPDX-License-Identifier: MIT
/* Perf's records as the kernel writes them (perf_event_open(2)), and damaged ones. */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "ext/counters/engine/activations.h"
#include "tests/cm.h"

#define COUNTERS 3
#define PREEMPTED 0x100
#define SLEEPS 1
#define STATE_OFFSET 32

struct record {
	struct perf_event_header header;
	uint64_t time_ns, count, enabled, running, values[COUNTERS];
	uint32_t raw_len;
	unsigned char raw[64];
} __attribute__((packed));

static struct activations begin(void)
{
	return (struct activations){.counters = COUNTERS, .state_offset = STATE_OFFSET, .state_size = 8};
}

static struct record sample(uint64_t time_ns, uint64_t state, uint64_t cpu_ns, uint64_t cycles)
{
	struct record record = {.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(record)},
				.time_ns = time_ns,
				.count = COUNTERS,
				.enabled = cpu_ns,
				.running = cpu_ns,
				.values = {1, cpu_ns, cycles},
				.raw_len = sizeof(record.raw)};

	memcpy(record.raw + STATE_OFFSET, &state, sizeof(state));
	return record;
}

static bool give(struct activations *all, const struct record *record, struct activation *ended)
{
	return activations_take(all, (const unsigned char *)record, sizeof(*record), ended);
}

static void an_activation_ends_when_its_thread_sleeps(void **state)
{
	struct activations all = begin();
	struct activation ended;
	struct record record = sample(1000, SLEEPS, 50, 100);

	(void)state;
	assert_false(give(&all, &record, &ended)); /* it had begun before */
	record = sample(2000, PREEMPTED, 80, 190);
	assert_false(give(&all, &record, &ended));
	record = sample(3000, SLEEPS, 150, 300);
	assert_true(give(&all, &record, &ended));
	assert_int_equal(ended.end_ns, 3000);
	assert_int_equal(ended.values[1], 100);
	assert_int_equal(ended.values[2], 200);
	assert_true(ended.whole);
	record = sample(4000, SLEEPS | PREEMPTED, 160, 330);
	record.running = 155;
	assert_true(give(&all, &record, &ended));
	assert_int_equal(ended.values[1], 10);
	assert_false(ended.whole);
}

static void the_activation_after_lost_samples_is_unknown(void **state)
{
	struct activations all = begin();
	struct activation ended;
	struct record record = sample(1000, SLEEPS, 50, 100);
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
	} lost = {.header = {.type = PERF_RECORD_LOST, .size = sizeof(lost)}, .id = 7, .lost = 5};

	(void)state;
	give(&all, &record, &ended);
	assert_false(activations_take(&all, (const unsigned char *)&lost, sizeof(lost), &ended));
	assert_int_equal(all.lost, 5);
	record = sample(2000, SLEEPS, 90, 200);
	assert_false(give(&all, &record, &ended));
	record = sample(3000, SLEEPS, 95, 210);
	assert_true(give(&all, &record, &ended));
	assert_int_equal(ended.values[1], 5);
}

static void a_damaged_record_counts_as_lost(void **state)
{
	struct activation ended;

	(void)state;
	for (size_t len = 0; len < sizeof(struct record); len++) {
		struct activations all = begin();
		struct record record = sample(1000, SLEEPS, 50, 100);
		unsigned char *cut = malloc(len ? len : 1); /* a sanitizer sees what is read beyond its end */

		assert_non_null(cut);
		memcpy(cut, &record, len);
		assert_false(activations_take(&all, cut, len, &ended));
		assert_false(all.has_base);
		assert_int_equal(all.lost, len >= sizeof(record.header));
		free(cut);
	}
}

static void a_record_of_any_content_is_read_within_its_bounds(void **state)
{
	struct activation ended;

	(void)state;
	srand(7);
	for (int i = 0; i < 20000; i++) {
		size_t len = (size_t)rand() % sizeof(struct record) + 1;
		struct activations all = begin();
		unsigned char *bytes = malloc(len);

		assert_non_null(bytes);
		for (size_t k = 0; k < len; k++)
			bytes[k] = (unsigned char)(rand() % (i % 2 ? 256 : 12));
		all.has_base = true;
		activations_take(&all, bytes, len, &ended);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_activation_ends_when_its_thread_sleeps),
		cmocka_unit_test(the_activation_after_lost_samples_is_unknown),
		cmocka_unit_test(a_damaged_record_counts_as_lost),
		cmocka_unit_test(a_record_of_any_content_is_read_within_its_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
