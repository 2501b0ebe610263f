// SPDX-License-Identifier: MIT
/* When a frame of the tire is copied, written or dropped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/commands.h"
#include "ext/tire/engine/frame.h"
#include "tests/cm.h"

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

#define PERIOD_NS INT64_C(10000000)
#define FAR_NS (INT64_C(3600) * NS_PER_S)
#define IDLE_NS 7

static struct tire_model model;
static struct tire_plan plan = {
	.model = &model, .solver = &tire_serial, .threads = 1, .period_ns = PERIOD_NS};
static char *text;
static size_t length;
static struct json j;

static void make(int64_t nodes)
{
	model = (struct tire_model){.nodes = nodes, .mass = 10, .radius = 2, .height = 1, .floor = true};
	tire_model_settle(&model);
	plan.tire = plan.solver->make(&model, 1);
	assert_non_null(plan.tire);
	plan.solver->reset(plan.tire, 0);
	assert_true(tire_frame_make(&plan));
	free(text);
	json_start(&j, open_memstream(&text, &length));
}

/* Called after the least time between two frames. Returns how many bytes were written. */
static size_t exchange(void)
{
	long before = ftell(j.out);

	clock_pause_ns(2 * TIRE_FRAME_NS);
	assert_in_range(tire_frame_exchange(&j, IDLE_NS), 1, TIRE_FRAME_NS);
	fflush(j.out);
	return (size_t)(ftell(j.out) - before);
}

static bool offer(int64_t step, int64_t left_ns)
{
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	return tire_frame_offer(step, 5, now_ns, now_ns + left_ns);
}

static void test_nobody_watches(void **state)
{
	(void)state;
	make(8);
	commands_watched = false;
	assert_int_equal(tire_frame_exchange(&j, IDLE_NS), IDLE_NS);
	assert_false(offer(1, FAR_NS));
}

static void test_a_frame_is_written_once(void **state)
{
	(void)state;
	make(8);
	commands_watched = true;
	assert_int_equal(exchange(), 0);
	assert_true(offer(3, FAR_NS));
	assert_false(offer(4, FAR_NS)); /* one is enough until it is written */
	assert_true(exchange() > 0);
	assert_non_null(strstr(text, "{\"type\":\"frame\",\"step\":3,\"time_ns\":5,\"every\":1,"));
	/* (2, 3) m, then (sqrt 2, 3 + sqrt 2) m in units of 2 m / 4096: 4096 and 6144, -1200 and 2896 */
	assert_non_null(strstr(text, "\"late\":0,\"unit_m\":0.00048828125,\"positions\":\"ggIggMhrCg1F"));
	assert_int_equal(exchange(), 0); /* no step since: nothing to write, and nothing is dropped */
	assert_true(offer(5, FAR_NS));
	exchange();
	assert_null(strstr(text, "\"dropped\":1"));
	commands_watched = false;
	exchange();
	assert_int_equal(tire_frame_exchange(&j, IDLE_NS), IDLE_NS);
	assert_false(offer(6, FAR_NS));
}

static void test_too_little_time_drops_it(void **state)
{
	(void)state;
	make(8);
	commands_watched = true;
	exchange();
	assert_false(offer(1, PERIOD_NS / 4 - 1));
	assert_false(offer(2, 0));
	assert_int_equal(exchange(), 0);
	assert_true(offer(3, FAR_NS));
	exchange();
	assert_non_null(strstr(text, "\"step\":3,"));
	assert_non_null(strstr(text, "\"dropped\":1,"));
	/* One that did not fit, and then one that did: nothing is lost. */
	assert_false(offer(4, 0));
	assert_true(offer(5, FAR_NS));
	exchange();
	assert_non_null(strstr(text, "\"step\":5,"));
	assert_null(strstr(text, "\"dropped\":2,"));
	commands_watched = false;
	exchange();
}

static void test_nothing_is_sent_to_a_reader_that_is_behind(void **state)
{
	char bytes[1 << 16];
	struct json to_memory;
	int ends[2];

	(void)state;
	make(8);
	to_memory = j;
	assert_int_equal(pipe(ends), 0);
	json_start(&j, fdopen(ends[1], "w"));
	commands_watched = true;
	clock_pause_ns(2 * TIRE_FRAME_NS);
	tire_frame_exchange(&j, IDLE_NS);
	assert_int_equal(write(ends[1], "window\n", 7), 7);
	assert_true(offer(1, FAR_NS));
	clock_pause_ns(2 * TIRE_FRAME_NS);
	tire_frame_exchange(&j, IDLE_NS);
	assert_int_equal(read(ends[0], bytes, sizeof(bytes)), 7);
	assert_true(offer(2, FAR_NS));
	clock_pause_ns(2 * TIRE_FRAME_NS);
	tire_frame_exchange(&j, IDLE_NS);
	bytes[read(ends[0], bytes, sizeof(bytes) - 1)] = '\0';
	assert_non_null(strstr(bytes, "\"step\":2,"));
	assert_non_null(strstr(bytes, "\"late\":0,"));
	assert_null(strstr(bytes, "\"dropped\":0,"));
	fclose(j.out);
	close(ends[0]);
	j = to_memory;
	commands_watched = false;
	exchange();
}

static size_t positions_of(int64_t nodes, int64_t period_ns)
{
	const char *at;
	size_t numbers = 0;

	plan.period_ns = period_ns;
	make(nodes);
	commands_watched = true;
	exchange();
	assert_true(offer(1, FAR_NS));
	exchange();
	plan.period_ns = PERIOD_NS;
	commands_watched = false;
	exchange();
	at = strstr(text, "\"positions\":\"") + strlen("\"positions\":\"");
	/* the last digit of a number is below 32: A to f */
	for (; *at != '"'; at++)
		numbers += (*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'f');
	return numbers / 2;
}

static void test_a_copy_is_a_small_share_of_the_period(void **state)
{
	(void)state;
	assert_int_equal(positions_of(1024, PERIOD_NS), 1024);
	assert_int_equal(positions_of(4000, PERIOD_NS), 1000);
	assert_int_equal(positions_of(4000, 1000000), 250);
	assert_int_equal(positions_of(4000, 20000), 16);
	assert_int_equal(positions_of(4000, 0), 1000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_watches),
		cmocka_unit_test(test_a_frame_is_written_once),
		cmocka_unit_test(test_too_little_time_drops_it),
		cmocka_unit_test(test_nothing_is_sent_to_a_reader_that_is_behind),
		cmocka_unit_test(test_a_copy_is_a_small_share_of_the_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
