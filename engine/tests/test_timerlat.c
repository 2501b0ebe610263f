// SPDX-License-Identifier: MIT
/* Activations from timerlat events: a simulated machine does what the kernel's wait_next_period does, with
 * delays and losses, and its events must give the same activations. */
#include <stdlib.h>
#include <string.h>

#include "probes/wakeup/activations.h"
#include "tests/check.h"
#include "tests/cm.h"

#define MS INT64_C(1000000)

/* Feeds one event; returns whether an activation is finished. */
static bool event(struct timerlat_track *track, uint32_t number, int context, int64_t release_ns,
		  int64_t latency_ns, int64_t stamped_after_ns, struct timerlat_activation *over)
{
	const struct timerlat_event e = {release_ns + latency_ns + stamped_after_ns, number, context,
					 latency_ns};

	return timerlat_track_event(track, &e, over);
}

static void each_activation_has_its_latencies(void **state)
{
	struct timerlat_track track = {.interval_ns = MS};
	struct timerlat_activation over;

	(void)state;
	assert_false(event(&track, 1, TIMERLAT_IRQ, 100 * MS, 2000, 300, &over));
	assert_false(event(&track, 1, TIMERLAT_THREAD, 100 * MS, 7000, 300, &over));
	assert_false(event(&track, 1, TIMERLAT_USER, 100 * MS, 9000, 300, &over));
	assert_true(event(&track, 2, TIMERLAT_IRQ, 101 * MS, 3000, 200, &over));
	assert_int_equal(over.release_ns, 100 * MS + 300);
	assert_int_equal(over.latency_ns[TIMERLAT_IRQ], 2000);
	assert_int_equal(over.latency_ns[TIMERLAT_THREAD], 7000);
	assert_int_equal(over.latency_ns[TIMERLAT_USER], 9000);
	assert_int_equal(over.missed, 0);
	assert_int_equal(over.lost, 0);
	assert_true(timerlat_track_end(&track, &over));
	assert_int_equal(over.release_ns, 101 * MS + 200); /* stamped sooner: the base decreased */
	assert_int_equal(over.back_ns, 100 * MS + 300 + 9000);
	assert_int_equal(over.latency_ns[TIMERLAT_THREAD], TIMERLAT_NONE);
	assert_false(timerlat_track_end(&track, &over));
}

static void skipped_releases_are_missed_and_lost_events_are_lost(void **state)
{
	struct timerlat_track track = {.interval_ns = MS};
	struct timerlat_activation over;

	(void)state;
	event(&track, 1, TIMERLAT_IRQ, 0, 1000, 100, &over);
	event(&track, 1, TIMERLAT_THREAD, 0, 3400000, 100, &over);
	assert_true(event(&track, 2, TIMERLAT_IRQ, 4 * MS, 1000, 100, &over));
	assert_int_equal(over.missed, 0);
	assert_true(event(&track, 5, TIMERLAT_IRQ, 8 * MS, 1000, 100, &over));
	assert_int_equal(over.missed, 3);
	assert_int_equal(over.lost, 0);
	assert_int_equal(over.back_ns, 3400100);
	assert_true(timerlat_track_end(&track, &over));
	assert_int_equal(over.missed, 1); /* releases 5, 6 and 7 ms: two of them came */
	assert_int_equal(over.lost, 2);
}

/* Stamped 1.4 intervals after its time was read: the next event corrects it. */
static void an_event_that_is_stamped_late_is_put_right(void **state)
{
	struct timerlat_track track = {.interval_ns = MS};
	struct timerlat_activation over;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		event(&track, i, TIMERLAT_IRQ, i * MS, 1000, i == 5 ? 1400000 : 100, &over);
	assert_int_equal(over.release_ns, 8 * MS + 100);
	assert_int_equal(over.missed, 0);
}

static void a_tracer_that_begins_anew_is_not_lost(void **state)
{
	struct timerlat_track track = {.interval_ns = MS};
	struct timerlat_activation over;

	(void)state;
	event(&track, 900, TIMERLAT_IRQ, 0, 1000, 100, &over);
	event(&track, 1, TIMERLAT_IRQ, MS, 1000, 100, &over);
	assert_true(timerlat_track_end(&track, &over));
	assert_int_equal(over.lost, 0);
	assert_int_equal(over.release_ns, MS + 100);
}

/* The kernel's side of one random measurement. */
struct machine {
	int64_t interval_ns, release_ns, skipped, dropped;
	uint32_t number;
};

static int64_t draw(int64_t below)
{
	return (int64_t)rand() % below;
}

/* Every release ends as an activation, a missed one or a lost one, whatever the delays. */
static void nothing_is_lost_unsaid(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 300; seed++) {
		struct machine m = {.interval_ns = seed % 2 ? 100000 : MS, .release_ns = 12345};
		struct timerlat_track track = {.interval_ns = m.interval_ns};
		int64_t taken = 0, missed = 0, lost = 0, releases = 0;
		struct timerlat_activation over;

		srand(seed);
		for (int i = 0; i < 2000; i++) {
			int64_t irq_ns = draw(5000), thread_ns = irq_ns + draw(20000), now_ns;
			bool drop = i > 0 && i < 1999 && draw(100) == 0;

			if (draw(50) == 0)
				thread_ns += draw(7 * m.interval_ns);
			m.number++;
			releases++;
			if (drop)
				m.dropped++;
			else if (event(&track, m.number, TIMERLAT_IRQ, m.release_ns, irq_ns,
				       draw(200) ? 50 + draw(2000) : draw(m.interval_ns * 7 / 10), &over)) {
				taken++;
				missed += over.missed;
				lost += over.lost;
			}
			if (!drop)
				event(&track, m.number, TIMERLAT_THREAD, m.release_ns, thread_ns, 50, &over);
			now_ns = m.release_ns + thread_ns + 1;
			for (m.release_ns += m.interval_ns; i < 1999 && m.release_ns < now_ns;
			     m.release_ns += m.interval_ns) {
				m.skipped++;
				releases++;
			}
		}
		assert_true(timerlat_track_end(&track, &over));
		taken++;
		missed += over.missed;
		lost += over.lost;
		assert_int_equal(lost, m.dropped);
		assert_int_equal(missed, m.skipped);
		assert_int_equal(taken + missed + lost, releases);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_activation_has_its_latencies),
		cmocka_unit_test(skipped_releases_are_missed_and_lost_events_are_lost),
		cmocka_unit_test(an_event_that_is_stamped_late_is_put_right),
		cmocka_unit_test(a_tracer_that_begins_anew_is_not_lost),
		cmocka_unit_test(nothing_is_lost_unsaid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
