// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "base/cpuset.h"
#include "harness/cpus.h"
#include "tests/check.h"
#include "tests/cm.h"

static void check_format(const char *text, const char *expected)
{
	struct cpuset set;
	char out[256];

	assert_true(cpuset_parse(&set, text));
	assert_string_equal(cpuset_format(&set, out, sizeof(out)), expected);
}

static void lists_are_read_and_written_as_the_field_does(void **state)
{
	(void)state;
	check_format("0", "0");
	check_format("0-3,6", "0-3,6");
	check_format("0-3,6\n", "0-3,6");
	check_format("6,0,1,3,2", "0-3,6");
	check_format("1-2,2-4,4", "1-4");
	check_format("5-5", "5");
	check_format("0,2,4", "0,2,4");
	check_format("63-64,127-128", "63-64,127-128");
	check_format("0-8191", "0-8191");
	check_format("8191", "8191");
	check_format("0007", "7");
	check_format("", "");
	check_format("\n", "");
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const wrong[] = {",",
					    "0,",
					    ",0",
					    "0,,1",
					    "-",
					    "-1",
					    "0-",
					    "3-1",
					    "8192",
					    "0-8192",
					    "99999999999999999999",
					    "1-99999999999999999999",
					    "4294967296",
					    "a",
					    "0x1",
					    " 0",
					    "0 ",
					    "0 1",
					    "0;1",
					    "+1",
					    "0-3/2",
					    "0-1-2",
					    "0\n1",
					    "\n0",
					    "\n\n",
					    "0\n\n",
					    "1.5",
					    "\xc2\xb2",
					    "0:1",
					    "all"};
	struct cpuset set;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (cpuset_parse(&set, wrong[i]))
			fail_msg("'%s' was taken", wrong[i]);
	}
}

static void any_set_comes_back_as_it_was(void **state)
{
	static struct cpuset set, back;
	static char text[65536];
	uint64_t random = 7;

	(void)state;
	for (int round = 0; round < 300; round++) {
		unsigned int count = 0;
		uint64_t density = next_random(&random) % 64;

		cpuset_clear(&set);
		for (unsigned int cpu = 0; cpu < CPUSET_MAX; cpu++) {
			if (next_random(&random) % 64 < density) {
				cpuset_add(&set, cpu);
				count++;
			}
		}
		assert_int_equal(cpuset_count(&set), count);
		assert_true(cpuset_parse(&back, cpuset_format(&set, text, sizeof(text))));
		assert_memory_equal(&set, &back, sizeof(set));
		for (int cpu = cpuset_next(&set, 0); cpu >= 0;
		     cpu = cpuset_next(&set, (unsigned int)cpu + 1), count--)
			assert_true(cpuset_has(&set, (unsigned int)cpu));
		assert_int_equal(count, 0);
	}
}

static void text_that_is_too_short_holds_whole_parts_only(void **state)
{
	static const char *const expected[] = {
		"", "1", "1", "1", "1", "1", "1", "1,20-22", "1,20-22", "1,20-22", "1,20-22", "1,20-22,300"};
	struct cpuset set;
	char text[16];

	(void)state;
	assert_true(cpuset_parse(&set, "1,20-22,300"));
	for (size_t size = 1; size <= 12; size++) {
		memset(text, 'x', sizeof(text));
		assert_string_equal(cpuset_format(&set, text, size), expected[size - 1]);
		assert_int_equal(text[size], 'x');
	}
}

static void numbers_beyond_the_set_are_not_in_it(void **state)
{
	struct cpuset set;

	(void)state;
	memset(&set, 0xff, sizeof(set));
	assert_false(cpuset_has(&set, CPUSET_MAX));
	assert_false(cpuset_has(&set, UINT32_MAX));
	assert_int_equal(cpuset_next(&set, CPUSET_MAX - 1), CPUSET_MAX - 1);
	assert_int_equal(cpuset_next(&set, CPUSET_MAX), -1);
	assert_int_equal(cpuset_count(&set), CPUSET_MAX);
}

static void this_machine_has_cpus(void **state)
{
	struct cpuset present, online, allowed;

	(void)state;
	assert_true(cpuset_present(&present) && cpuset_online(&online) && cpuset_allowed(&allowed));
	assert_true(cpuset_count(&online) >= 1 && cpuset_count(&allowed) >= 1);
	for (int cpu = cpuset_next(&online, 0); cpu >= 0; cpu = cpuset_next(&online, (unsigned int)cpu + 1))
		assert_true(cpuset_has(&present, (unsigned int)cpu));
	assert_int_equal(cpuset_pin(0, &allowed), 0);
	cpuset_clear(&present);
	assert_int_not_equal(cpuset_pin(0, &present), 0);
}

static void check_allowed(const char *affinity, const char *reachable, const char *isolated,
			  const char *expected)
{
	struct probe_cpus cpus = {0};
	struct cpuset aside;
	char text[64];

	assert_true(cpuset_parse(&cpus.affinity, affinity));
	assert_true(cpuset_parse(&cpus.reachable, reachable));
	assert_true(cpuset_parse(&aside, isolated));
	probe_cpus_allow(&cpus, &aside);
	assert_string_equal(cpuset_format(&cpus.allowed, text, sizeof(text)), expected);
}

static void isolated_cpus_are_measured_and_taskset_is_obeyed(void **state)
{
	(void)state;
	check_allowed("0-3", "0-3", "", "0-3");
	check_allowed("0-2", "0-3", "3", "0-3");	  /* isolcpus=3 */
	check_allowed("0,62", "0-63", "1-61,63", "0-63"); /* most are isolated */
	check_allowed("0-1", "0-3", "", "0-1");		  /* taskset -c 0-1 */
	check_allowed("0-1", "0-3", "3", "0-1");	  /* the same beside isolcpus=3 */
	check_allowed("3", "0-3", "3", "3");		  /* taskset -c 3 */
	check_allowed("0-2", "0-2", "3", "0-2");	  /* a cpuset without the isolated one */
	check_allowed("0-1", "0-1,3", "3", "0-1,3");	  /* a cpuset without CPU 2 */
	check_allowed("0-1,5", "0-1", "", "0-1");	  /* CPU 5 went offline */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_read_and_written_as_the_field_does),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(any_set_comes_back_as_it_was),
		cmocka_unit_test(text_that_is_too_short_holds_whole_parts_only),
		cmocka_unit_test(numbers_beyond_the_set_are_not_in_it),
		cmocka_unit_test(this_machine_has_cpus),
		cmocka_unit_test(isolated_cpus_are_measured_and_taskset_is_obeyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
