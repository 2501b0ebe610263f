// SPDX-License-Identifier: MIT
/* Signal paths: an edge arrives at the other end with its data; invalid texts. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "ext/signal/engine/path/gpio_spec.h"
#include "ext/signal/engine/path/path.h"
#include "tests/check.h"
#include "tests/cm.h"

static const char *const all[] = {"loop:eventfd", "loop:pipe",		 "loop:socketpair", "loop:mqueue",
				  "loop:udp",	  "udp:127.0.0.1:17113", "udp:[::1]:17113"};
#define ALL (sizeof(all) / sizeof(all[0]))

static void close_ends(struct path_end ends[2])
{
	for (int i = 0; i < 2; i++) {
		close(ends[i].in);
		if (ends[i].out != ends[i].in)
			close(ends[i].out);
	}
}

static bool readable(int fd)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};

	return poll(&in, 1, 0) == 1;
}

static void an_edge_goes_there_and_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ALL; i++) {
		struct path_end ends[2];
		struct edge edge;

		assert_int_equal(path_open(all[i], PATH_BOTH, true, ends), 0);
		for (int64_t n = 1; n <= 3; n++) {
			int64_t said = ends[0].kind->numbered ? n : EDGE_UNNUMBERED;

			assert_false(readable(ends[PATH_SLAVE].in));
			assert_int_equal(ends[0].kind->send(&ends[PATH_MASTER], n), 0);
			assert_true(readable(ends[PATH_SLAVE].in));
			assert_int_equal(ends[0].kind->receive(&ends[PATH_SLAVE], &edge), 0);
			assert_int_equal(edge.number, said);
			assert_int_equal(edge.count, 1);
			assert_int_equal(ends[0].kind->send(&ends[PATH_SLAVE], edge.number), 0);
			assert_true(readable(ends[PATH_MASTER].in));
			assert_int_equal(ends[0].kind->receive(&ends[PATH_MASTER], &edge), 0);
			assert_int_equal(edge.number, said);
			assert_false(readable(ends[PATH_MASTER].in));
		}
		close_ends(ends);
	}
}

/* A path that joins edges says how many; otherwise each one is taken. */
static void no_edge_is_lost_unsaid(void **state)
{
	(void)state;
	for (size_t i = 0; i < ALL; i++) {
		struct path_end ends[2];
		struct edge edge;
		unsigned int seen = 0;

		assert_int_equal(path_open(all[i], PATH_BOTH, true, ends), 0);
		for (int64_t n = 1; n <= 5; n++)
			assert_int_equal(ends[0].kind->send(&ends[PATH_MASTER], n), 0);
		while (readable(ends[PATH_SLAVE].in)) {
			assert_int_equal(ends[0].kind->receive(&ends[PATH_SLAVE], &edge), 0);
			seen += edge.count;
		}
		assert_int_equal(seen, 5);
		if (ends[0].kind->numbered)
			assert_int_equal(edge.number, 5);
		close_ends(ends);
	}
}

/* A stranger's datagram is no edge. */
static void what_is_no_datagram_of_ours_is_passed_over(void **state)
{
	struct path_end ends[2], stranger[2];
	struct edge edge;

	(void)state;
	assert_int_equal(path_open("udp:127.0.0.1:17114", PATH_BOTH, true, ends), 0);
	assert_int_equal(path_open("udp:127.0.0.1:17114", PATH_MASTER, true, stranger), 0);
	assert_int_equal(write(stranger[PATH_MASTER].out, "hello, is anybody there?", 16), 16);
	assert_int_equal(write(stranger[PATH_MASTER].out, "rtgauge1", 8), 8);
	assert_int_equal(ends[0].kind->send(&ends[PATH_MASTER], 9), 0);
	assert_int_equal(ends[0].kind->receive(&ends[PATH_SLAVE], &edge), 0);
	assert_int_equal(edge.number, 9);
	close(stranger[PATH_MASTER].in);
	close_ends(ends);
}

/* The error line goes to standard output; here it matters only that there is no path. */
static void texts_that_name_no_path_are_refused(void **state)
{
	static const char *const wrong[] = {"",
					    "loop",
					    "loop:",
					    "loop:x",
					    "loop:eventfdx",
					    "loop:eventfd:x",
					    "udp",
					    "udp:",
					    "udp:h:1",
					    "udp:127.0.0.1",
					    "udp:127.0.0.1:0",
					    "udp:127.0.0.1:65536",
					    "udp:[::1:5",
					    "udp::1",
					    "udp:[fe80::1%nowhere]:1",
					    "gpio",
					    "gpio:",
					    "gpio:x",
					    "gpio:x:",
					    "gpio:x:1",
					    "gpio:x:1,2,3,4,5",
					    "gpio:x:1,2,3,4:up",
					    "gpio:/dev/null:1,2,3,4"};
	struct path_end ends[2];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (!path_open(wrong[i], PATH_BOTH, true, ends))
			fail_msg("'%s' was taken", wrong[i]);
	}
	assert_int_equal(path_open("loop:pipe", PATH_MASTER, true, ends), 2);
	assert_int_equal(path_open("loop:pipe", PATH_SLAVE, true, ends), 2);
}

static void lines_and_options_of_gpio_are_read(void **state)
{
	struct gpio_spec spec;
	const char *why;

	(void)state;
	assert_true(gpio_spec_parse("/dev/gpiochip0:17,LED_A", &spec, &why));
	assert_string_equal(spec.chip, "/dev/gpiochip0");
	assert_int_equal(spec.line_count, 2);
	assert_string_equal(spec.lines[0], "17");
	assert_string_equal(spec.lines[1], "LED_A");
	assert_false(spec.active_low);
	assert_int_equal(spec.bias, GPIO_BIAS_AS_IS);
	assert_true(gpio_spec_parse("gpiochip1:3:pull-up,active-low", &spec, &why));
	assert_true(spec.active_low);
	assert_int_equal(spec.bias, GPIO_BIAS_PULL_UP);
	assert_false(gpio_spec_parse("gpiochip1:3:pull-up,,active-low", &spec, &why));
	assert_false(gpio_spec_parse("gpiochip1:3:pull-up:active-low", &spec, &why));
	assert_false(gpio_spec_parse("gpiochip1:,3", &spec, &why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_edge_goes_there_and_back),
		cmocka_unit_test(no_edge_is_lost_unsaid),
		cmocka_unit_test(what_is_no_datagram_of_ours_is_passed_over),
		cmocka_unit_test(texts_that_name_no_path_are_refused),
		cmocka_unit_test(lines_and_options_of_gpio_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
