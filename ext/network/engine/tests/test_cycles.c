// SPDX-License-Identifier: MIT
/* Cycles of 1000 that begin at 10000, with a timeout of 5000. Another model than the program's counts them:
 * each cycle has a script, and the script says how it must end. */
#include <stdlib.h>

#include "base/clock.h"
#include "ext/network/engine/cycles.h"
#include "tests/check.h"
#include "tests/cm.h"

#define START 10000
#define INTERVAL 1000
#define MOST 4096

static struct cycle finished[MOST];
static int finished_count;
static struct cycle *table; /* of the test that runs */

static void keep(void *to, const struct cycle *cycle)
{
	(void)to;
	assert_true(finished_count < MOST);
	finished[finished_count++] = *cycle;
}

static struct cycles make(void)
{
	struct cycles c = {.start_ns = START,
			   .interval_ns = INTERVAL,
			   .timeout_ns = 5000,
			   .sent_late_ns = 500,
			   .stamped = true,
			   .finished = keep};

	finished_count = 0;
	free(table);
	assert_true(cycles_make(&c));
	table = c.table;
	return c;
}

static int64_t release(int64_t number)
{
	return START + number * INTERVAL;
}

static void take(struct cycles *c, enum frame_event_kind kind, int64_t number, int64_t time_ns,
		 int64_t stamp_ns)
{
	const struct frame_event event = {kind, number, time_ns, stamp_ns, 0};

	cycles_take(c, &event);
}

/* As take(), with a time stamp of a network card whose clock began elsewhere. */
static void take_hardware(struct cycles *c, enum frame_event_kind kind, int64_t number, int64_t time_ns,
			  int64_t stamp_ns, int64_t hardware_ns)
{
	const struct frame_event event = {kind, number, time_ns, stamp_ns, hardware_ns};

	cycles_take(c, &event);
}

static void send_at(struct cycles *c, int64_t number, int64_t after_ns)
{
	take(c, FRAME_SENT, number, release(number) + after_ns, 0);
	take(c, FRAME_DEPARTED, number, 0, release(number) + after_ns + 5);
}

static void answer_at(struct cycles *c, int64_t number, int64_t arrived_ns, int64_t back_ns)
{
	take(c, FRAME_RECEIVED, number, release(number) + back_ns, release(number) + arrived_ns);
}

static enum outcome only_outcome(struct cycles *c)
{
	cycles_finish(c);
	assert_int_equal(finished_count, 1);
	assert_int_equal(c->counts[finished[0].outcome], 1);
	return finished[0].outcome;
}

static void each_way_to_end(void **state)
{
	struct cycles c = make();

	(void)state;
	send_at(&c, 0, 10);
	answer_at(&c, 0, 900, 1000);
	assert_int_equal(only_outcome(&c), CYCLE_ANSWERED);
	assert_int_equal(finished[0].departed_ns, START + 15);
	assert_int_equal(finished[0].arrived_ns, START + 900);

	c = make();
	send_at(&c, 0, 10);
	answer_at(&c, 0, 1001, 1200);
	assert_int_equal(only_outcome(&c), CYCLE_LATE);

	c = make();
	send_at(&c, 0, 10);
	answer_at(&c, 0, 1000, 1200); /* it was there in time, but this machine read it late */
	assert_int_equal(only_outcome(&c), CYCLE_READ_LATE);

	c = make();
	send_at(&c, 0, 501);
	answer_at(&c, 0, 600, 700);
	assert_int_equal(only_outcome(&c), CYCLE_SENT_LATE);

	c = make();
	take(&c, FRAME_SENT, 0, START + 10, 0);
	take(&c, FRAME_DEPARTED, 0, 0, START + 800); /* a queue of this machine kept it */
	take(&c, FRAME_NONE, 0, START + 5001, 0);
	assert_int_equal(only_outcome(&c), CYCLE_SENT_LATE);

	c = make();
	take(&c, FRAME_NOT_SENT, 0, START + 1500, 0);
	assert_int_equal(only_outcome(&c), CYCLE_NOT_SENT);

	c = make();
	send_at(&c, 0, 10);
	take(&c, FRAME_NONE, 0, START + 5000, 0);
	cycles_finish(&c);
	assert_int_equal(finished_count, 0); /* the answer may still come */
	take(&c, FRAME_NONE, 0, START + 5001, 0);
	assert_int_equal(only_outcome(&c), CYCLE_LOST);
}

/* A thread that was kept from looking for the answer proves nothing. */
static void lost_is_what_was_looked_for(void **state)
{
	struct cycles c = make();

	(void)state;
	send_at(&c, 0, 10);
	for (int i = 1; i < 100; i++)
		take(&c, FRAME_NOT_SENT, i, release(i) + 50000, 0);
	cycles_finish(&c);
	assert_int_equal(finished_count, 0);
	answer_at(&c, 0, 300, 99000);
	cycles_finish(&c);
	assert_int_equal(finished_count, 100);
	assert_int_equal(c.counts[CYCLE_READ_LATE], 1);
	assert_int_equal(c.counts[CYCLE_NOT_SENT], 99);

	c = make();
	send_at(&c, 0, 10);
	for (int i = 1; i < 10; i++)
		send_at(&c, i, 10);
	answer_at(&c, 9, 50,
		  60); /* frames come in the order of arrival, so the others did not arrive before */
	cycles_finish(&c);
	assert_int_equal(finished_count, 5); /* released more than 5000 before cycle 9 was sent */
	assert_int_equal(c.counts[CYCLE_LOST], 5);
	cycles_finish_all(&c, true);
	assert_int_equal(c.counts[CYCLE_LOST], 5); /* stopped before the others could be answered */
	assert_int_equal(c.counts[CYCLE_ANSWERED], 1);
}

/* The end came before the thread had read everything, for example because foreign frames filled its time. */
static void what_was_not_read_is_not_lost(void **state)
{
	struct cycles c = make();

	(void)state;
	for (int i = 0; i < 10; i++)
		send_at(&c, i, 10);
	take(&c, FRAME_NONE, 9, release(7), 0);
	cycles_finish_all(&c, false);
	assert_int_equal(finished_count, 10);
	assert_int_equal(c.counts[CYCLE_LOST], 2);
	assert_int_equal(c.counts[CYCLE_READ_LATE], 8);
}

static void other_frames(void **state)
{
	struct cycles c = make();

	(void)state;
	send_at(&c, 0, 10);
	send_at(&c, 1, 10);
	answer_at(&c, 1, 50, 60);
	answer_at(&c, 0, 1100, 1200); /* behind the answer of a later cycle */
	assert_int_equal(c.others.reordered, 1);
	answer_at(&c, 1, 70, 80);
	assert_int_equal(c.others.duplicate, 1);
	cycles_finish(&c);
	answer_at(&c, 1, 90, 95); /* the cycle is finished, and still known */
	assert_int_equal(c.others.duplicate, 2);
	answer_at(&c, 2, 10, 20); /* nobody sent this */
	assert_int_equal(c.foreign, 1);
	send_at(&c, 2, 10);
	answer_at(&c, 2, 5001, 5002);
	assert_int_equal(c.others.after_timeout, 1);
	cycles_finish(&c);
	assert_int_equal(finished_count, 2);
	take(&c, FRAME_NONE, 2, release(2) + 6000, 0);
	cycles_finish(&c);
	assert_int_equal(c.counts[CYCLE_LOST], 1);
	answer_at(&c, 2, 7000, 7001);
	assert_int_equal(c.others.after_timeout, 2);
	assert_int_equal(c.counts[CYCLE_ANSWERED] + c.counts[CYCLE_LATE] + c.counts[CYCLE_LOST], 3);
}

/* The network card's clock says how long a frame and its answer were outside of it. */
static void a_card_that_stamps(void **state)
{
	struct cycles c = make();

	(void)state;
	c.hardware = true;
	take(&c, FRAME_SENT, 0, release(0) + 10, 0);
	take(&c, FRAME_DEPARTED, 0, 0, release(0) + 15);
	take_hardware(&c, FRAME_RECEIVED, 0, release(0) + 900, release(0) + 815, 7000700);
	cycles_finish(&c);
	assert_int_equal(finished_count, 0); /* the card's time stamp of the departure may still come */
	take_hardware(&c, FRAME_DEPARTED, 0, 0, 0, 7000000);
	assert_int_equal(only_outcome(&c), CYCLE_ANSWERED);
	assert_int_equal(finished[0].departed_ns, START + 15);
	assert_int_equal(cycle_outside_ns(&finished[0]), 700); /* 100 of 800 were in the card */

	/* A clock that was set between the two, and a card that left one out. */
	for (int64_t arrived_ns = 0; arrived_ns < 4; arrived_ns++) {
		static const int64_t at[] = {0, 7000801, 6999999, 7000000 - NS_PER_S};
		struct cycle cycle = finished[0];

		cycle.hardware_arrived_ns = at[arrived_ns];
		assert_int_equal(cycle_outside_ns(&cycle), -1);
	}
	c = make();
	c.hardware = true;
	send_at(&c, 0, 10);
	answer_at(&c, 0, 300, 400);
	take(&c, FRAME_NONE, 0, release(0) + 5001, 0);
	assert_int_equal(only_outcome(&c), CYCLE_ANSWERED); /* without the card's time stamps */
	assert_int_equal(cycle_outside_ns(&finished[0]), -1);
}

/* A warm-up is not counted. A nonsense stamp of a departure that nobody knows is left alone. */
static void a_warm_up(void **state)
{
	struct cycles c = make();

	(void)state;
	c.warm_up_count = 2;
	for (int i = 0; i < 5; i++) {
		send_at(&c, i, 10);
		answer_at(&c, i, 50, 60);
	}
	take(&c, FRAME_DEPARTED, -1, 0, 1);
	take(&c, FRAME_DEPARTED, 77, 0, 1);
	cycles_finish_all(&c, true);
	assert_int_equal(finished_count, 5);
	assert_int_equal(c.counts[CYCLE_ANSWERED], 3);
}

/* The thread does not read for long: what is open is bounded, and each cycle still ends once, but not lost.
 */
static void more_open_cycles_than_the_table_has(void **state)
{
	struct cycles c = make();

	(void)state;
	for (int i = 0; i < MOST - 1; i++)
		send_at(&c, i, 10);
	assert_true(finished_count > MOST / 4);
	assert_int_equal(c.counts[CYCLE_READ_LATE], finished_count);
	take(&c, FRAME_NONE, MOST - 2, release(MOST - 2) + 5001, 0);
	cycles_finish_all(&c, true);
	assert_int_equal(finished_count, MOST - 1);
	assert_int_equal(c.counts[CYCLE_LOST] + c.counts[CYCLE_READ_LATE], MOST - 1);
}

/* Scripts at random, in the order of time. */
static void every_cycle_ends_once(void **state)
{
	enum { CYCLES = 3000 };
	static enum outcome expected[CYCLES];
	uint64_t random = 45;

	(void)state;
	for (int round = 0; round < 20; round++) {
		struct cycles c = make();
		int64_t expected_counts[CYCLE_OUTCOMES] = {0}, all = 0, duplicates = 0;

		for (int i = 0; i < CYCLES; i++) {
			expected[i] = (enum outcome)(next_random(&random) % CYCLE_OUTCOMES);
			expected_counts[expected[i]]++;
			/* A late answer to the cycle before is read while this one waits. */
			if (expected[i] == CYCLE_NOT_SENT)
				take(&c, FRAME_NOT_SENT, i, release(i) + INTERVAL, 0);
			else
				send_at(&c, i, expected[i] == CYCLE_SENT_LATE ? 600 : 20);
			if (i && expected[i - 1] == CYCLE_LATE)
				answer_at(&c, i - 1, INTERVAL + 100, INTERVAL + 700);
			if (i && expected[i - 1] == CYCLE_READ_LATE)
				answer_at(&c, i - 1, 700, INTERVAL + 700);
			if (expected[i] == CYCLE_ANSWERED ||
			    (expected[i] == CYCLE_SENT_LATE && next_random(&random) % 2)) {
				answer_at(&c, i, 800, 900);
				if (next_random(&random) % 8 == 0) {
					answer_at(&c, i, 810, 910);
					duplicates++;
				}
			}
			if (next_random(&random) % 3 == 0)
				cycles_finish(&c);
		}
		if (expected[CYCLES - 1] == CYCLE_LATE)
			answer_at(&c, CYCLES - 1, INTERVAL + 100, INTERVAL + 700);
		if (expected[CYCLES - 1] == CYCLE_READ_LATE)
			answer_at(&c, CYCLES - 1, 700, INTERVAL + 700);
		take(&c, FRAME_NONE, CYCLES - 1, release(CYCLES) + 6000, 0);
		cycles_finish_all(&c, true);
		for (int i = 0; i < CYCLE_OUTCOMES; i++) {
			assert_int_equal(c.counts[i], expected_counts[i]);
			all += c.counts[i];
		}
		assert_int_equal(all, CYCLES);
		assert_int_equal(finished_count, CYCLES);
		assert_int_equal(c.others.duplicate, duplicates);
		for (int i = 0; i < CYCLES; i++) {
			assert_int_equal(finished[i].number, i);
			assert_int_equal(finished[i].outcome, expected[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_to_end),
		cmocka_unit_test(lost_is_what_was_looked_for),
		cmocka_unit_test(what_was_not_read_is_not_lost),
		cmocka_unit_test(other_frames),
		cmocka_unit_test(a_card_that_stamps),
		cmocka_unit_test(a_warm_up),
		cmocka_unit_test(more_open_cycles_than_the_table_has),
		cmocka_unit_test(every_cycle_ends_once),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(table);
	return failed;
}
