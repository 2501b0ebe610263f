// SPDX-License-Identifier: MIT
/* The reader of the kernel's rings. Pipes that keep packets apart stand for the rings. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/cm.h"
#include "trace/reader.h"

#define DATA 16
#define RECORD 16 /* with its head */

struct taken {
	int64_t times_ns[8];
	int cpus[8];
	int count;
};

static void take(void *user, const unsigned char *record, size_t len, int64_t time_ns, int cpu)
{
	struct taken *taken = user;

	assert_non_null(record);
	assert_int_equal(len, RECORD - 4);
	assert_in_range(taken->count, 0, 7);
	taken->times_ns[taken->count] = time_ns;
	taken->cpus[taken->count++] = cpu;
}

/* Writes a page with one record. */
static void write_page(int ring, uint64_t time_ns)
{
	unsigned char page[DATA + RECORD] = {0};
	const uint64_t commit = RECORD;
	const uint32_t head = (RECORD - 4) / 4;

	memcpy(page, &time_ns, sizeof(time_ns));
	memcpy(page + 8, &commit, sizeof(commit));
	memcpy(page + DATA, &head, sizeof(head));
	assert_int_equal(write(ring, page, sizeof(page)), sizeof(page));
}

static void a_ring_that_is_ahead_waits_for_the_others(void **state)
{
	static const uint64_t pages_ns[2][3] = {{1000, 2000, 3000}, {1500, 1600, 1700}};
	static const int64_t until_ns[] = {1000, 1500, 1600, 1700, 2000, 3000, INT64_MAX};
	static const int64_t times_ns[] = {1000, 1500, 2000, 1600, 1700, 3000};
	static const int cpus[] = {4, 6, 4, 6, 6, 4};
	static struct trace_reader reader;
	static unsigned char page[65536];
	struct taken taken = {0};
	int ends[2][2];

	(void)state;
	reader = (struct trace_reader){.ring_count = 2,
				       .cpus = {4, 6},
				       .data_offset = DATA,
				       .page_size = DATA + RECORD,
				       .page = page};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe2(ends[i], O_DIRECT | O_NONBLOCK | O_CLOEXEC), 0);
		for (int p = 0; p < 3; p++)
			write_page(ends[i][1], pages_ns[i][p]);
		reader.rings[i] = ends[i][0];
	}
	for (size_t turn = 0; turn < sizeof(until_ns) / sizeof(until_ns[0]); turn++)
		assert_int_equal(trace_reader_take(&reader, 1, take, &taken), until_ns[turn]);
	assert_int_equal(taken.count, 6);
	assert_memory_equal(taken.times_ns, times_ns, sizeof(times_ns));
	assert_memory_equal(taken.cpus, cpus, sizeof(cpus));
	trace_reader_close(&reader);
	close(ends[0][1]);
	close(ends[1][1]);
}

static int refused_in = -1; /* the call, from 0 on, that gets no memory */

void *__real_memory_get(size_t size);
void *__wrap_memory_get(size_t size);

void *__wrap_memory_get(size_t size)
{
	return refused_in-- ? __real_memory_get(size) : NULL;
}

/* What it has got by then is returned, which the sanitizer checks: explaining on its own needs memory, too.
 */
static void without_memory_nothing_is_kept(void **state)
{
	static struct trace_reader reader;

	(void)state;
	for (int refused = 0; refused < 5; refused++) {
		reader = (struct trace_reader){.ring_count = 2, .data_offset = DATA, .page_size = 4096};
		refused_in = refused;
		assert_false(trace_reader_keep(&reader, 65536));
		assert_int_equal(errno, ENOMEM);
		assert_null(reader.stores);
	}
	refused_in = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_that_is_ahead_waits_for_the_others),
		cmocka_unit_test(without_memory_nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
