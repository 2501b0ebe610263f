// SPDX-License-Identifier: MIT
/* The first thread's pause ends when it is woken, also if it was woken before it began. The host's requests.
 */
#include "base/commands.h"

#include <string.h>
#include <unistd.h>

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

/* The host's lines come through a pipe as standard input. */
static void say(const char *lines)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], lines, strlen(lines)), (ssize_t)strlen(lines));
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	commands_begin(true);
	commands_wait(FOREVER);
	close(ends[0]);
	close(ends[1]);
}

static void test_moments_are_asked_for_in_order(void **state)
{
	struct moment_request request;

	(void)state;
	say("moment 1000 7 1\nmoment 2000 0 2\n");
	assert_true(commands_moment(&request));
	assert_int_equal(request.time_ns, 1000);
	assert_int_equal(request.tid, 7);
	assert_int_equal(request.number, 1);
	assert_true(commands_moment(&request));
	assert_int_equal(request.number, 2);
	assert_false(commands_moment(&request));
}

static void test_other_words_are_no_request(void **state)
{
	struct moment_request request;

	(void)state;
	say("moment\nmoment \nmoment 1000 7\nmoment 0 7 1\nmoment 1000 -7 1\nmoment 1000 7 1x\n");
	assert_false(commands_moment(&request));
}

static void test_more_requests_than_wait_are_forgotten(void **state)
{
	struct moment_request request;
	unsigned int taken = 0;

	(void)state;
	say("moment 1 0 1\nmoment 1 0 1\nmoment 1 0 1\nmoment 1 0 1\nmoment 1 0 1\nmoment 1 0 1\n"
	    "moment 1 0 1\nmoment 1 0 1\nmoment 1 0 1\nmoment 1 0 1\nmoment 1 0 1\nmoment 1 0 1\n"
	    "moment 1 0 1\nmoment 1 0 1\nmoment 1 0 1\nmoment 1 0 1\nmoment 1 0 1\n");
	while (commands_moment(&request))
		taken++;
	assert_int_equal(taken, MOMENT_REQUESTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pause_ends_when_it_is_woken),
		cmocka_unit_test(test_moments_are_asked_for_in_order),
		cmocka_unit_test(test_other_words_are_no_request),
		cmocka_unit_test(test_more_requests_than_wait_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
