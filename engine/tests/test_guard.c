// SPDX-License-Identifier: MIT
/* A guard that had no CPU for longer than its lease. The linker uses the clock and the poll of this file
 * instead of the real ones. */
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/guard.h"
#include "tests/cm.h"

#define LEASE_NS (10 * NS_PER_S)

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

static time_t later_s;
static const char *const *words; /* what the host says while the guard has no CPU; NULL: no more */
static int host;		 /* its end of the pipe */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int status = __real_clock_gettime(clock, now);

	now->tv_sec += later_s;
	return status;
}

/* A wait finds nothing, and then the guard has no CPU for longer than its lease. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (count == 1)
		return __real_poll(fds, count, timeout_ms);
	later_s += 2 * LEASE_NS / NS_PER_S;
	if (*words) {
		assert_int_equal(write(host, *words, strlen(*words)), strlen(*words));
		words++;
	}
	for (nfds_t i = 0; i < count; i++)
		fds[i].revents = 0;
	return 0;
}

/* Returns why it ended. */
static const char *guarded(const char *const *said)
{
	static struct guard guard;
	int ends[2], before = dup(STDIN_FILENO);

	guard = (struct guard){.lease_ns = LEASE_NS, .lock.fd = -1, .program_in = -1, .signals = -1};
	words = said;
	assert_false(pipe(ends));
	assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
	close(ends[0]);
	host = ends[1];
	guard_loop(&guard);
	close(host);
	if (before >= 0) {
		dup2(before, STDIN_FILENO);
		close(before);
	}
	return guard.reason;
}

static void what_was_said_meanwhile_renews_the_lease(void **state)
{
	static const char *const said[] = {"renew\n", "renew\n", "re", "new\nstop\n", NULL};

	(void)state;
	assert_string_equal(guarded(said), "stop");
}

static void a_silent_host_ends_it(void **state)
{
	static const char *const said[] = {"renew\n", NULL};

	(void)state;
	assert_string_equal(guarded(said), "lease");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_said_meanwhile_renews_the_lease),
		cmocka_unit_test(a_silent_host_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
