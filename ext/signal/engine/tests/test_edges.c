// SPDX-License-Identifier: MIT
/* The drain of the probe periodic, with edges that were made and edges that were seen. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ext/signal/engine/periodic/edges.h"
#include "tests/cm.h"

#define START INT64_C(77000000000)
#define HALF INT64_C(1000000)

static struct edges edges;
static struct toggler toggler;
static struct observer observer;
static struct sight sights[16];
static struct histogram negatives[EDGES_SERIES];
static char *text;
static size_t size;
static struct json j;

static int begin(void **state)
{
	(void)state;
	memset(&edges, 0, sizeof(edges));
	memset(&toggler, 0, sizeof(toggler));
	if (!edges_make(&edges) || !toggler_make(&toggler))
		return -1;
	slot_ring_init(&observer.ring, sizeof(sights) / sizeof(sights[0]));
	observer.slots = sights;
	edges.start_ns = START;
	edges.half_ns = HALF;
	edges.both = true;
	json_start(&j, open_memstream(&text, &size));
	for (int i = 0; i < EDGES_SERIES; i++) {
		series_timed(&edges.series[i], START, 0, 1000 * HALF);
		if (i != SELF_LATENCY)
			edges.series[i].negatives = &negatives[i];
	}
	edges.series[SELF_LATENCY] = (struct series){
		.interval_ns = HALF, .start_ns = START, .total_count = 1000, .measured_ns = 1000 * HALF};
	for (int i = 0; i < EDGES_SERIES; i++)
		series_begin(&edges.series[i]);
	return 0;
}

static int end(void **state)
{
	(void)state;
	fclose(j.out);
	free(text);
	for (int i = 0; i < EDGES_SERIES; i++)
		series_free(&edges.series[i]);
	free(edges.series);
	free(edges.releases);
	free(toggler.slots);
	return 0;
}

static void made(int64_t release, int64_t edge, int64_t late_ns)
{
	size_t slot;

	assert_true(slot_ring_next(&toggler.ring, &slot));
	toggler.slots[slot] = (struct toggle){release, edge, START + release * HALF + late_ns};
	slot_ring_push(&toggler.ring);
}

static void seen(int64_t edge, int64_t seen_ns, unsigned int at_once)
{
	size_t slot;

	assert_true(slot_ring_next(&observer.ring, &slot));
	observer.slots[slot] = (struct sight){seen_ns, edge, at_once};
	slot_ring_push(&observer.ring);
}

static void take(void)
{
	edges_take_toggles(&edges, &toggler, &j);
	edges_take_sights(&edges, &observer, &j);
}

static int64_t count(enum edges_series i)
{
	series_end(&edges.series[i], true, &j);
	return edges.series[i].total.count;
}

static void each_edge_is_late_by_its_release(void **state)
{
	(void)state;
	made(0, 1, 100);
	made(1, 2, 250);
	seen(1, START + 400, 1);
	seen(2, START + HALF + 300, 1);
	take();
	assert_int_equal(count(SELF_LATENCY), 2);
	assert_int_equal(edges.series[SELF_LATENCY].total.max_ns, 250);
	assert_int_equal(count(SELF_JITTER), 1);
	assert_int_equal(edges.series[SELF_JITTER].total.max_ns, 150);
	assert_int_equal(count(OTHER_LATENCY), 2);
	assert_int_equal(edges.series[OTHER_LATENCY].total.max_ns, 400);
	assert_int_equal(count(OTHER_JITTER), 1);
	assert_int_equal(edges.series[OTHER_JITTER].total.min_ns, -100);
}

static void one_that_is_seen_first_waits_for_who_made_it(void **state)
{
	(void)state;
	seen(1, START + 400, 1);
	take();
	assert_int_equal(edges.seen, 0);
	made(0, 1, 100);
	take();
	assert_int_equal(edges.seen, 1);
	assert_int_equal(count(OTHER_LATENCY), 1);
}

static void edges_at_once_are_doubled_and_not_lost(void **state)
{
	(void)state;
	for (int64_t i = 0; i < 6; i++)
		made(i, i + 1, 100);
	seen(1, START + 200, 1);
	seen(3, START + 2 * HALF + 200, 2); /* the second was taken with it */
	seen(6, START + 5 * HALF + 200, 1); /* the fourth and the fifth never came */
	take();
	assert_int_equal(edges.seen, 4);
	assert_int_equal(edges.doubled, 1);
	assert_int_equal(edges.lost, 2);
	assert_int_equal(count(OTHER_LATENCY), 3);
	assert_int_equal(count(OTHER_JITTER), 0);
}

/* Samples that the ring could not hold are lost, not missed, and have no release. */
static void one_that_could_not_be_kept_is_lost(void **state)
{
	(void)state;
	made(0, 1, 100);
	made(2, 3, 100);
	seen(2, START + HALF + 200, 1);
	take();
	assert_int_equal(edges.series[SELF_LATENCY].lost, 1);
	assert_int_equal(count(SELF_LATENCY), 2);
	assert_int_equal(count(SELF_JITTER), 0);
	assert_int_equal(count(OTHER_LATENCY), 0);
	assert_int_equal(edges.seen, 1);
}

static void half_periods_that_were_slept_through_are_missed(void **state)
{
	(void)state;
	made(0, 1, 2 * HALF + 500);
	made(3, 2, 100);
	take();
	assert_int_equal(edges.series[SELF_LATENCY].lost, 0);
	assert_int_equal(count(SELF_LATENCY), 2);
	assert_int_equal(edges.series[SELF_LATENCY].missed, 2);
}

/* Makes no edge: that of the first release takes until three of the measured phase are past. */
static int send_slowly(struct path_end *line, int64_t number)
{
	(void)line;
	(void)number;
	while (clock_now_ns(CLOCK_MONOTONIC) <= toggler.start_ns + (toggler.warm_up_count + 3) * HALF)
		;
	return 0;
}

static void one_may_be_slept_through_from_the_warm_up_into_the_measured_phase(void **state)
{
	static const struct path_kind slow = {.name = "slow", .send = send_slowly};
	struct series *s = &edges.series[SELF_LATENCY];
	struct path_end line = {.kind = &slow};

	(void)state;
	edges.start_ns = s->start_ns = toggler.start_ns = clock_now_ns(CLOCK_MONOTONIC);
	toggler.end = &line;
	toggler.half_ns = HALF;
	s->warm_up_count = toggler.warm_up_count = 4;
	s->total_count = toggler.total_count = 20;
	s->measured_ns = 16 * HALF;
	series_begin(s);
	toggler.thread.schedstat = -1;
	toggler.thread.measure(&toggler.thread);
	take();
	assert_int_equal(s->position, 20);
	series_end(s, false, &j);
	assert_true(s->missed >= 3);
	assert_int_equal(s->total.count + s->missed, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_edge_is_late_by_its_release, begin, end),
		cmocka_unit_test_setup_teardown(one_that_is_seen_first_waits_for_who_made_it, begin, end),
		cmocka_unit_test_setup_teardown(edges_at_once_are_doubled_and_not_lost, begin, end),
		cmocka_unit_test_setup_teardown(one_that_could_not_be_kept_is_lost, begin, end),
		cmocka_unit_test_setup_teardown(half_periods_that_were_slept_through_are_missed, begin, end),
		cmocka_unit_test_setup_teardown(
			one_may_be_slept_through_from_the_warm_up_into_the_measured_phase, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
