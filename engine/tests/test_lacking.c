// SPDX-License-Identifier: MIT
/* What a co-kernel lacks, of the options that were read. */

#include <stddef.h>

#include "rt/lacking.h"
#include "tests/cm.h"

static int method;
static bool slow;
static const char *instance;
static const char *const methods[] = {"fast", "other", NULL};
static const struct option_entry table[] = {
	{.name = "method", .kind = OPTION_CHOICE, .value = &method, .choices = methods},
	{.name = "slow", .kind = OPTION_FLAG, .value = &slow},
	{.name = "instance", .kind = OPTION_TEXT, .value = &instance},
	{0},
};
static const struct lacking lacking[] = {
	{"here", "method", "other", NULL},
	{NULL, "slow", "on", NULL},
	{NULL, "instance", NULL, "--traced"},
	{NULL, NULL, NULL, NULL},
};

static int refused(const char *verb)
{
	return lacking_choice("Core", lacking, verb, table);
}

static void test_only_what_is_chosen_is_refused(void **state)
{
	(void)state;
	method = 0;
	slow = false;
	instance = NULL;
	assert_int_equal(refused("here"), 0);
	method = 1;
	assert_int_equal(refused("elsewhere"), 0);
	assert_int_equal(refused("here"), 2);
	method = 0;
	slow = true;
	assert_int_equal(refused("elsewhere"), 2);
	slow = false;
	instance = "any";
	assert_int_equal(refused("elsewhere"), 2);
}

static void test_a_probe_that_is_not_there_is_refused(void **state)
{
	static const char *const probes[] = {"here", NULL};

	(void)state;
	assert_int_equal(lacking_probe("Core", probes, &(struct verb){.name = "here"}), 0);
	assert_int_equal(lacking_probe("Core", probes, &(struct verb){.name = "elsewhere"}), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_what_is_chosen_is_refused),
		cmocka_unit_test(test_a_probe_that_is_not_there_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
