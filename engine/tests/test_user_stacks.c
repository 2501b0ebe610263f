// SPDX-License-Identifier: MIT
/* How a thread's stack is described, and samples whose sizes are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static int opened, read_files;

static int count_open(const char *path, int flags)
{
	opened += !(flags & O_PATH);
	return open(path, flags);
}

static FILE *count_fopen(const char *path, const char *mode)
{
	read_files++;
	return fopen(path, mode);
}

#define open count_open
#define fopen count_fopen
#include "probes/watch/user_stacks.c" /* NOLINT(bugprone-suspicious-include): its parts are static */

#define CALL 74
#define TIME 1000000

static struct user_stack room[PENDING];

static struct user_stacks empty(void)
{
	struct user_stacks stacks = {.tid = gettid(), .pending = room, .ids = {1, 2, 3, 4}};

	memset(room, 0, sizeof(room));
	return stacks;
}

static void forget(const struct user_stacks *stacks)
{
	for (int i = 0; i < stacks->kept_count; i++)
		free(stacks->kept[i].text);
}

/* Returns the length of a sample of a call, with one frame, at an address. */
static size_t sample(uint64_t data[256], uint64_t address)
{
	size_t at = 0;

	data[at++] = 2;
	data[at++] = TIME;
	data[at++] = 2;
	data[at++] = (uint64_t)PERF_CONTEXT_USER;
	data[at++] = address;
	data[at++] = 20; /* the size of the event, and its first 4 bytes */
	data[at++] = (uint64_t)CALL << 32;
	data[at++] = 0;
	data[at++] = PERF_SAMPLE_REGS_ABI_64;
	data[at++] = 0x1010;
	data[at++] = 0x1000;
	data[at++] = WORDS * sizeof(uint64_t);
	data[at] = 0x1020;
	data[at + 1] = address;
	at += WORDS;
	data[at++] = 2 * sizeof(uint64_t); /* so much of it there was */
	return at;
}

static void test_a_stack_is_kept_for_the_call_in_its_time(void **state)
{
	struct user_stacks stacks = empty();
	uint64_t data[256] = {0};
	size_t count = sample(data, (uint64_t)(uintptr_t)sample);

	(void)state;
	take(&stacks, data, count);
	stacks.wanted[stacks.wanted_count++] = CALL;
	stacks.wanted[stacks.wanted_count++] = CALL + 1;
	stacks.failed = true; /* no event of the kernel */
	user_stacks_call(&stacks, 3, CALL + 1, TIME - 10, TIME + 10);
	user_stacks_call(&stacks, 3, CALL, TIME + EARLY_NS + 1, TIME + EARLY_NS + 2);
	assert_int_equal(stacks.kept_count, 0);
	user_stacks_call(&stacks, 3, CALL, TIME + 10, TIME + 20);
	assert_int_equal(stacks.kept_count, 1);
	assert_int_equal(stacks.kept[0].rule, 3);
	assert_non_null(strstr(stacks.kept[0].text, "\nf 1 "));
	if (REGISTERS) {
		assert_non_null(strstr(stacks.kept[0].text, "\nb 10\n"));
		assert_non_null(strstr(stacks.kept[0].text, "\np0 20\n"));
		assert_non_null(strstr(stacks.kept[0].text, "\ns8 1 "));
	}
	user_stacks_call(&stacks, 3, CALL, TIME + 10, TIME + 20);
	assert_int_equal(stacks.kept[0].count, 1);
	forget(&stacks);
}

static void test_a_rule_keeps_few_places(void **state)
{
	struct user_stacks stacks = empty();
	uint64_t data[256] = {0};

	(void)state;
	stacks.wanted[stacks.wanted_count++] = CALL;
	stacks.failed = true;
	for (int i = 0; i < 2 * PER_RULE; i++) {
		take(&stacks, data, sample(data, (uint64_t)(uintptr_t)sample + (uint64_t)(i % 5)));
		user_stacks_call(&stacks, 0, CALL, TIME, TIME + 20);
	}
	assert_int_equal(stacks.kept_count, KEPT_PER_RULE);
	assert_int_equal(stacks.taken[0], PER_RULE);
	forget(&stacks);
}

/* A page fault has no event of the tracing system, and on some processors no registers. */
static void test_each_page_fault_has_its_stack(void **state)
{
	struct user_stacks stacks = empty();
	uint64_t data[] = {2, TIME, 1, 0, 4}; /* 4: the size of an event that is not there */

	(void)state;
	stacks.failed = true;
	data[0] = stacks.ids[MINOR];
	for (int i = 0; i < 2; i++) {
		data[3] = (uint64_t)(uintptr_t)sample + (uint64_t)i;
		take(&stacks, data, sizeof(data) / sizeof(data[0]));
	}
	user_stacks_faults(&stacks, 0, false);
	assert_int_equal(stacks.kept_count, 2);
	forget(&stacks);
}

/* The thread cannot change its mappings meanwhile. */
static void test_the_mappings_are_read_once_for_all_page_faults(void **state)
{
	struct user_stacks stacks = empty();
	const uint64_t data[] = {stacks.ids[MINOR], TIME, 1, 1, 4}; /* no code is at this address */

	(void)state;
	stacks.failed = true;
	for (int i = 0; i < PENDING; i++)
		take(&stacks, data, sizeof(data) / sizeof(data[0]));
	read_files = 0;
	user_stacks_faults(&stacks, 0, false);
	assert_int_equal(stacks.taken[0], PENDING);
	assert_int_equal(read_files, 1);
	forget(&stacks);
}

/* Opening a device may have an effect. */
static void test_no_device_that_is_mapped_is_opened(void **state)
{
	char name[] = "/tmp/rtgauge-stacks-XXXXXX";
	const char *const files[] = {name, "/dev/zero"};
	int own = mkstemp(name);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	(void)state;
	assert_true(own >= 0);
	close(own);
	for (int i = 0; i < 2; i++) {
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		void *map = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
		struct code_file file = {.start = (uint64_t)(uintptr_t)map};
		char link[96];
		int known;

		assert_true(map != MAP_FAILED);
		file.end = file.start + page;
		snprintf(link, sizeof(link), "/proc/self/map_files/%llx-%llx", (unsigned long long)file.start,
			 (unsigned long long)file.end);
		known = open(link, O_PATH | O_CLOEXEC); /* only root may */
		opened = 0;
		identify(getpid(), &file);
		assert_int_equal(opened, !i && known >= 0);
		if (known >= 0)
			close(known);
		munmap(map, page);
		close(fd);
	}
	unlink(name);
}

static void test_wrong_sizes_are_not_read(void **state)
{
	struct user_stacks stacks = empty();
	uint64_t data[256] = {0};
	size_t count = sample(data, 0x400000);

	(void)state;
	for (size_t cut = 0; cut < count; cut++) {
		uint64_t *copy = malloc((cut + !cut) * sizeof(*copy)); /* so that a sanitizer finds it */

		assert_non_null(copy);
		memcpy(copy, data, cut * sizeof(*copy));
		take(&stacks, copy, cut);
		free(copy);
	}
	for (size_t at = 2; at < count; at++) {
		uint64_t *copy = malloc(count * sizeof(*copy));

		assert_non_null(copy);
		memcpy(copy, data, count * sizeof(*copy));
		copy[at] = UINT64_MAX;
		take(&stacks, copy, count);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_stack_is_kept_for_the_call_in_its_time),
		cmocka_unit_test(test_a_rule_keeps_few_places),
		cmocka_unit_test(test_each_page_fault_has_its_stack),
		cmocka_unit_test(test_the_mappings_are_read_once_for_all_page_faults),
		cmocka_unit_test(test_no_device_that_is_mapped_is_opened),
		cmocka_unit_test(test_wrong_sizes_are_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
