// SPDX-License-Identifier: MIT
/* The sum of a CPU's column in a text in the form of /proc/interrupts, and in other texts. */
#include <stdlib.h>
#include <string.h>

#include "rt/interrupts.h"
#include "tests/check.h"
#include "tests/cm.h"

static const char two_cpus[] = "           CPU0       CPU1       \n"
			       "  1:          9          0   IO-APIC   1-edge      i8042\n"
			       " 24:          0        100   PCI-MSI 512000-edge      eth0-rx:3\n"
			       "LOC:    1000000          7   Local timer interrupts\n"
			       "ERR:          5\n"
			       "MIS:          0\n";

static void a_column_is_added_up(void **state)
{
	(void)state;
	assert_int_equal(interrupts_sum(two_cpus, 0), 9 + 1000000 + 5);
	assert_int_equal(interrupts_sum(two_cpus, 1), 100 + 7);
	assert_int_equal(interrupts_sum(two_cpus, 2), 0);
}

static void other_texts_have_a_sum_too(void **state)
{
	static const char signs[] = "0123456789: \n:::CPU-x";
	uint64_t random = 7;
	char text[200];

	(void)state;
	assert_int_equal(interrupts_sum("", 0), 0);
	assert_int_equal(interrupts_sum("\n\n:", 0), 0);
	assert_int_equal(interrupts_sum("a: 3", 0), 3);
	for (int n = 0; n < 20000; n++) {
		size_t len = (size_t)(next_random(&random) % (sizeof(text) - 1));

		for (size_t i = 0; i < len; i++)
			text[i] = signs[next_random(&random) % (sizeof(signs) - 1)];
		text[len] = '\0';
		(void)interrupts_sum(text, (int)(next_random(&random) % 5));
	}
}

/* More gaps than the kernel counts interrupts for would be a wrong answer: this CPU's count only grows. */
static void this_machine_counts_up(void **state)
{
	struct interrupts interrupts;
	int64_t before;

	(void)state;
	if (interrupts_open(&interrupts, 0))
		skip();
	before = interrupts_read(&interrupts);
	assert_true(before >= 0);
	assert_true(interrupts_read(&interrupts) >= before);
	free(interrupts.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_column_is_added_up),
		cmocka_unit_test(other_texts_have_a_sum_too),
		cmocka_unit_test(this_machine_counts_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
