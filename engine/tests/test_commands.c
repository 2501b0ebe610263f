// SPDX-License-Identifier: MIT
/* The first thread's pause ends when it is woken, also if it was woken before it began. */
#include "base/commands.h"
#include "tests/cm.h"

#define FOREVER (-1)

static void test_a_pause_ends_when_it_is_woken(void **state)
{
	(void)state;
	commands_begin(false);
	commands_wake();
	commands_wake();
	commands_wait(FOREVER);
	assert_false(atomic_load(&commands_stopped));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pause_ends_when_it_is_woken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
