// SPDX-License-Identifier: MIT
/* watch: cycles from the events of a thread, threads from /proc. */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/threads.h"
#include "probes/watch/blocking_calls.h"
#include "probes/watch/cycles.h"
#include "probes/watch/grid.h"
#include "probes/watch/interrupt_events.h"
#include "probes/watch/stops.h"
#include "tests/check.h"
#include "tests/cm.h"

#define TID 7

#define PERIOD INT64_C(1000000)
#define BEGIN INT64_C(5000000000)

/* A thread on CPU 0, and what the model made of its events. */
struct loop {
	struct waits waits;
	struct cycles cycles;
	struct clock_offsets offsets;
	int64_t begun, done, overruns, unknown, latency_ns, response_ns, at_least_ns, certain;
	int64_t least_response_ns, timer_ns;
};

static void take(void *user, enum cycle_news news, const struct activation *a)
{
	struct loop *loop = user;

	loop->begun += news == CYCLE_BEGUN;
	loop->done += news == CYCLE_DONE;
	loop->overruns += news == CYCLE_OVERRUN;
	loop->unknown += news == CYCLE_UNKNOWN_RELEASE;
	if (news == CYCLE_BEGUN)
		loop->latency_ns = a->start_ns - a->release_ns, loop->timer_ns = a->timer_ns;
	if (news == CYCLE_DONE) {
		loop->response_ns = a->end_ns - a->release_ns;
		loop->certain += a->certain;
	}
	if (news == CYCLE_OVERRUN)
		loop->at_least_ns = a->at_least_ns;
	if (news == CYCLE_OVERRUN || (news == CYCLE_DONE && !a->certain))
		loop->least_response_ns = a->least_response_ns;
}

static void give(struct loop *loop, struct sched_event event)
{
	event.to = event.kind == SCHED_SWITCH ? event.to : TID;
	if (event.kind != SCHED_WAKING && event.kind != SCHED_SWITCH)
		event.current = TID;
	switch (waits_take(&loop->waits, &event, &loop->offsets)) {
	case NEWS_ENTERED:
		cycles_enter(&loop->cycles, &loop->waits.now);
		break;
	case NEWS_RETURNED:
		cycles_return(&loop->cycles, &loop->waits, &loop->waits.now);
		break;
	default:
		break;
	}
}

static void enters(struct loop *loop, int64_t time_ns, long number, uint64_t object)
{
	give(loop, (struct sched_event){.kind = SCHED_SYSCALL,
					.time_ns = time_ns,
					.call = {.number = number, .arguments = {object}}});
}

static void arms(struct loop *loop, int64_t time_ns, int64_t expiry_ns)
{
	give(loop, (struct sched_event){.kind = SCHED_TIMER,
					.time_ns = time_ns,
					.expiry_ns = expiry_ns,
					.timer = 1,
					.use = USE_TIME_OUT});
}

static void leaves(struct loop *loop, int64_t time_ns, int64_t result)
{
	give(loop, (struct sched_event){.kind = SCHED_RETURN, .time_ns = time_ns, .result = result});
}

static void off(struct loop *loop, int64_t time_ns)
{
	give(loop, (struct sched_event){.kind = SCHED_SWITCH, .time_ns = time_ns, .from = TID, .to = 1});
}

static void on(struct loop *loop, int64_t time_ns)
{
	give(loop, (struct sched_event){.kind = SCHED_SWITCH, .time_ns = time_ns, .from = 1, .to = TID});
}

static void wakes(struct loop *loop, int64_t time_ns, pid_t current, bool hardirq)
{
	give(loop, (struct sched_event){
			   .kind = SCHED_WAKING, .time_ns = time_ns, .current = current, .hardirq = hardirq});
}

static void begin_loop(struct loop *loop)
{
	const struct cycle_wish wish = {.call = -1, .fd = -1};

	*loop = (struct loop){0};
	waits_begin(&loop->waits, TID, true);
	cycles_begin(&loop->cycles, &wish, take, loop);
}

/* Sleeps until the expiry, and returns 20 us later. */
static void sleeps_until(struct loop *loop, int64_t now_ns, int64_t expiry_ns)
{
	enters(loop, now_ns, SYS_clock_nanosleep, 1);
	arms(loop, now_ns + 200, expiry_ns);
	off(loop, now_ns + 1000);
	wakes(loop, expiry_ns + 10000, 1, true);
	on(loop, expiry_ns + 15000);
	leaves(loop, expiry_ns + 20000, 0);
}

/* Begins a loop, runs 100 cycles of 1 ms with 100 us of work, and lets the model choose. */
static int64_t learn(struct loop *loop)
{
	int64_t now_ns = BEGIN;

	begin_loop(loop);
	for (int i = 1; i <= 100; i++) {
		sleeps_until(loop, now_ns, BEGIN + i * PERIOD);
		now_ns = BEGIN + i * PERIOD + 120000 + (int64_t)(i % 7) * 1000;
	}
	assert_true(cycles_learn(&loop->cycles, &loop->waits, false));
	assert_int_equal(loop->cycles.model.kind, CYCLE_PERIODIC);
	assert_int_equal((int64_t)(loop->cycles.model.grid.period_ns + 0.5), PERIOD);
	return now_ns;
}

static void a_cycle_is_from_the_release_to_the_next_wait(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop);

	(void)state;
	assert_int_equal(loop.begun, 100);
	assert_int_equal(loop.latency_ns, 20000);
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	assert_int_equal(loop.done, 100);
	assert_int_equal(loop.response_ns, 120000 + 2000);
	cycles_free(&loop.cycles);
}

static void a_lock_within_the_cycle_does_not_end_it(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop);

	(void)state;
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	now_ns = BEGIN + 101 * PERIOD + 50000;
	enters(&loop, now_ns, SYS_futex, 0x1000);
	off(&loop, now_ns + 1000);
	wakes(&loop, now_ns + 600000, 3, false);
	on(&loop, now_ns + 610000);
	leaves(&loop, now_ns + 611000, 0);
	sleeps_until(&loop, now_ns + 700000, BEGIN + 102 * PERIOD);
	assert_int_equal(loop.begun, 102);
	assert_int_equal(loop.response_ns, 750000);
	cycles_free(&loop.cycles);
}

static void a_late_wait_that_returns_at_once_is_an_activation(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop);

	(void)state;
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	now_ns = BEGIN + 102 * PERIOD + 700000; /* the work took too long */
	enters(&loop, now_ns, SYS_clock_nanosleep, 1);
	arms(&loop, now_ns + 100, BEGIN + 102 * PERIOD);
	leaves(&loop, now_ns + 500, 0);
	assert_int_equal(loop.begun, 102);
	assert_int_equal(loop.latency_ns, 700500);
	assert_int_equal(loop.overruns, 0);
	cycles_free(&loop.cycles);
}

static void a_release_without_a_wait_is_an_overrun(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop);

	(void)state;
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	now_ns = BEGIN + 101 * PERIOD + 500000;
	off(&loop, now_ns); /* asleep for 1.2 ms, over one release */
	wakes(&loop, now_ns + 1200000, 3, false);
	on(&loop, now_ns + 1210000);
	sleeps_until(&loop, now_ns + 1300000, BEGIN + 103 * PERIOD);
	assert_int_equal(loop.overruns, 1);
	assert_int_equal(loop.at_least_ns, now_ns + 1210000 - (BEGIN + 102 * PERIOD));
	assert_int_equal(loop.certain, loop.done - 1);
	cycles_free(&loop.cycles);
}

static void a_thread_that_hangs_is_stuck(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop);

	(void)state;
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	enters(&loop, BEGIN + 101 * PERIOD + 50000, SYS_futex, 0x1000);
	off(&loop, BEGIN + 101 * PERIOD + 51000);
	assert_true(cycles_end(&loop.cycles, &loop.waits, BEGIN + 150 * PERIOD, false));
	assert_int_equal(loop.overruns, 49);
	cycles_free(&loop.cycles);
}

static void a_response_before_a_release_without_a_wait_takes_a_period(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop);

	(void)state;
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	enters(&loop, BEGIN + 102 * PERIOD + 300000, SYS_clock_nanosleep, 1);
	arms(&loop, BEGIN + 102 * PERIOD + 300200, BEGIN + 103 * PERIOD);
	off(&loop, BEGIN + 102 * PERIOD + 301000);
	wakes(&loop, BEGIN + 103 * PERIOD + 10000, 1, true);
	on(&loop, BEGIN + 103 * PERIOD + 15000);
	leaves(&loop, BEGIN + 103 * PERIOD + 20000, 0);
	assert_int_equal(loop.overruns, 1);
	assert_int_equal(loop.at_least_ns, 0);
	assert_in_range(loop.least_response_ns, 299000, 301000); /* of the release, run last or skipped */
	cycles_free(&loop.cycles);
}

static void a_loop_that_waits_when_late_will_wait_for_the_points_that_came(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop);

	(void)state;
	for (int i = 101; i <= 105; i++) {
		int64_t entered_ns = i == 101 ? now_ns : BEGIN + (i + 2) * PERIOD;

		enters(&loop, entered_ns, SYS_clock_nanosleep, 1);
		arms(&loop, entered_ns + 200, BEGIN + i * PERIOD);
		leaves(&loop, BEGIN + (i == 101 ? i : i + 2) * PERIOD + 20000, 0);
	}
	cycles_end(&loop.cycles, &loop.waits, BEGIN + 109 * PERIOD + 500000, false);
	assert_int_equal(loop.overruns, 4);
	assert_in_range(loop.at_least_ns, 499000, 501000); /* the age of the last one */
	cycles_free(&loop.cycles);
}

static void releases_while_events_were_lost_are_unknown(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop);

	(void)state;
	waits_lost(&loop.waits);
	cycles_lost(&loop.cycles, &loop.waits, now_ns, BEGIN + 105 * PERIOD + 500000);
	sleeps_until(&loop, BEGIN + 105 * PERIOD + 600000, BEGIN + 106 * PERIOD);
	assert_int_equal(loop.unknown, 5);
	assert_int_equal(loop.overruns, 0);
	cycles_free(&loop.cycles);
}

static void an_interrupted_wait_goes_on(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop);

	(void)state;
	enters(&loop, now_ns, SYS_clock_nanosleep, 1);
	arms(&loop, now_ns + 100, BEGIN + 101 * PERIOD);
	off(&loop, now_ns + 1000);
	wakes(&loop, now_ns + 200000, 3, false);
	on(&loop, now_ns + 210000);
	leaves(&loop, now_ns + 211000, -516); /* a signal with a handler */
	sleeps_until(&loop, now_ns + 230000, BEGIN + 101 * PERIOD);
	assert_int_equal(loop.begun, 101);
	assert_int_equal(loop.overruns, 0);
	assert_int_equal(loop.latency_ns, 20000);
	cycles_free(&loop.cycles);
}

/* As a rate that sleeps for one period from now on if it is late. */
static void a_grid_may_begin_anew_after_an_overrun(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop), anew_ns = BEGIN + 103 * PERIOD + 400000;

	(void)state;
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	for (int i = 1; i <= 3; i++) {
		sleeps_until(&loop, anew_ns + (i - 1) * PERIOD + 200000, anew_ns + i * PERIOD);
		assert_int_equal(loop.latency_ns, 20000);
	}
	assert_int_equal(loop.begun, 104);
	assert_int_equal(loop.overruns, 2);
	cycles_free(&loop.cycles);
}

/* As JACK's dummy driver: if it is late, it sleeps for no time, and then for one period from then on. */
static void a_grid_may_begin_anew_after_a_sleep_for_no_time(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop), late_ns = BEGIN + 102 * PERIOD + 150000;

	(void)state;
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	enters(&loop, late_ns, SYS_clock_nanosleep, 1);
	arms(&loop, late_ns + 200, late_ns + 200);
	leaves(&loop, late_ns + 20000, 0);
	assert_int_equal(loop.latency_ns, 170000);
	now_ns = late_ns + 120000;
	for (int i = 1; i <= 3; i++) {
		sleeps_until(&loop, now_ns + (i > 1 ? (i - 1) * PERIOD + 120000 : 0), now_ns + i * PERIOD);
		assert_int_equal(loop.latency_ns, 20000);
		assert_int_equal(loop.timer_ns, 0);
	}
	assert_int_equal(loop.begun, 105);
	assert_int_equal(loop.overruns, 0);
	cycles_free(&loop.cycles);
}

/* A program that was late once, and set its next timers behind the grid: the first of them is late, and what
 * the program set is known. Then the grid follows, and no activation counts twice. */
static void a_grid_follows_timers_that_stay_behind_it(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop), moved_ns = BEGIN + 102 * PERIOD + 270000;

	(void)state;
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	assert_int_equal(loop.timer_ns, 0);
	for (int i = 0; i < 100; i++) {
		sleeps_until(&loop, moved_ns + (i - 1) * PERIOD + 120000, moved_ns + i * PERIOD);
		assert_int_equal(loop.latency_ns, i < 2 ? 290000 : 20000);
		assert_int_equal(loop.timer_ns, i < 2 ? moved_ns + i * PERIOD : 0);
	}
	assert_int_equal(loop.begun, 201);
	assert_int_equal(loop.overruns, 0);
	assert_int_equal(loop.cycles.changes, 0);
	cycles_free(&loop.cycles);
}

/* The period is known to 5 ns, so that the next expiry seems to lie 5 us beside its point. */
static void a_long_stop_does_not_begin_the_grid_anew(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop);

	(void)state;
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	loop.cycles.model.grid.period_ns += 5;
	off(&loop, BEGIN + 101 * PERIOD + 50000);
	now_ns = BEGIN + 1101 * PERIOD + 500000;
	wakes(&loop, now_ns, 3, false);
	on(&loop, now_ns + 10000);
	sleeps_until(&loop, now_ns + 20000, BEGIN + 1102 * PERIOD);
	assert_int_equal(loop.overruns, 1000);
	assert_true(loop.at_least_ns > 500000);
	cycles_free(&loop.cycles);
}

/* A virtual machine does not trace the switch. */
static void a_woken_thread_may_run_before_an_event_shows_it(void **state)
{
	struct loop loop;
	int64_t now_ns = learn(&loop);

	(void)state;
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	now_ns = BEGIN + 101 * PERIOD + 500000;
	off(&loop, now_ns);
	wakes(&loop, now_ns + 1200000, 3, false);
	sleeps_until(&loop, now_ns + 1400000, BEGIN + 103 * PERIOD);
	assert_int_equal(loop.overruns, 1);
	assert_int_equal(loop.at_least_ns, now_ns + 1200000 - (BEGIN + 102 * PERIOD));
	cycles_free(&loop.cycles);
}

/* One cycle that also sleeps for 250 us. Returns when it ends. */
static int64_t cycle_with_a_pause(struct loop *loop, int64_t now_ns, int i)
{
	sleeps_until(loop, now_ns, BEGIN + i * PERIOD);
	now_ns = BEGIN + i * PERIOD + 120000 + (int64_t)(i % 7) * 3000;
	sleeps_until(loop, now_ns, now_ns + 200 + 250000);
	return now_ns + 350000;
}

static void a_pause_that_a_signal_interrupts_does_not_end_the_cycle(void **state)
{
	struct loop loop;
	int64_t now_ns = BEGIN;

	(void)state;
	begin_loop(&loop);
	for (int i = 1; i <= 100; i++)
		now_ns = cycle_with_a_pause(&loop, now_ns, i);
	assert_true(cycles_learn(&loop.cycles, &loop.waits, false));
	sleeps_until(&loop, now_ns, BEGIN + 101 * PERIOD);
	now_ns = BEGIN + 101 * PERIOD + 120000;
	enters(&loop, now_ns, SYS_clock_nanosleep, 1);
	arms(&loop, now_ns + 200, now_ns + 250200);
	off(&loop, now_ns + 1000);
	wakes(&loop, now_ns + 100000, 3, false);
	on(&loop, now_ns + 110000);
	leaves(&loop, now_ns + 111000, -516);
	sleeps_until(&loop, now_ns + 115000, now_ns + 255000); /* for the rest */
	sleeps_until(&loop, now_ns + 400000, BEGIN + 102 * PERIOD);
	assert_int_equal(loop.response_ns, 520000);
	assert_int_equal(loop.begun, 102);
	cycles_free(&loop.cycles);
}

static void work_of_two_lengths_is_no_second_sleep(void **state)
{
	struct loop loop;
	int64_t now_ns = BEGIN;

	(void)state;
	begin_loop(&loop);
	for (int i = 1; i <= 100; i++) { /* each fourth cycle is long: the other sleeps are equally long */
		sleeps_until(&loop, now_ns, BEGIN + i * PERIOD);
		now_ns = BEGIN + i * PERIOD + 120000 + (i % 4 ? i % 7 * INT64_C(100) : 600000);
	}
	assert_true(cycles_learn(&loop.cycles, &loop.waits, false));
	assert_int_equal(loop.cycles.model.kind, CYCLE_PERIODIC);
	assert_int_equal((int64_t)(loop.cycles.model.grid.period_ns + 0.5), PERIOD);
	assert_false(loop.cycles.choice.unclear);
	assert_int_equal(loop.begun, 100);
	cycles_free(&loop.cycles);
}

static void a_relative_sleep_is_no_grid(void **state)
{
	struct loop loop;
	int64_t now_ns = BEGIN;

	(void)state;
	begin_loop(&loop);
	for (int i = 1; i <= 100; i++) {
		sleeps_until(&loop, now_ns, now_ns + 200 + PERIOD);
		now_ns += 200 + PERIOD + 120000 + (int64_t)(i % 7) * 1000;
	}
	assert_true(cycles_learn(&loop.cycles, &loop.waits, false));
	assert_int_equal(loop.cycles.model.kind, CYCLE_RELATIVE);
	assert_int_equal((int64_t)loop.cycles.model.sleep_ns, PERIOD);
	assert_int_equal(loop.latency_ns, 20000);
	cycles_free(&loop.cycles);
}

/* Waits for data that come in each period, and lets the model choose. */
static void learn_data(struct loop *loop)
{
	begin_loop(loop);
	for (int i = 1; i <= 100; i++) {
		int64_t release_ns = BEGIN + i * PERIOD + (int64_t)(i * i % 11) * 20000;

		enters(loop, release_ns - 700000, SYS_recvfrom, 5);
		off(loop, release_ns - 699000);
		wakes(loop, release_ns, 3, false);
		on(loop, release_ns + 8000);
		leaves(loop, release_ns + 9000, 64);
	}
	assert_true(cycles_learn(&loop->cycles, &loop->waits, false));
	assert_int_equal(loop->cycles.model.kind, CYCLE_DATA);
}

static void a_thread_that_others_wake_is_of_data(void **state)
{
	struct loop loop;

	(void)state;
	learn_data(&loop);
	assert_int_equal(loop.latency_ns, 9000);
	cycles_free(&loop.cycles);
}

static void the_two_futexes_of_a_condition_variable_are_one_wait(void **state)
{
	struct loop loop;

	(void)state;
	begin_loop(&loop);
	for (int i = 1; i <= 100; i++) {
		int64_t release_ns = BEGIN + i * PERIOD + (int64_t)(i * i % 11) * 20000;

		enters(&loop, release_ns - 700000, SYS_futex, 0x1028 + (uint64_t)(i % 2) * 4);
		off(&loop, release_ns - 699000);
		wakes(&loop, release_ns, 3, false);
		on(&loop, release_ns + 8000);
		leaves(&loop, release_ns + 9000, 0);
	}
	assert_true(cycles_learn(&loop.cycles, &loop.waits, false));
	assert_int_equal(loop.cycles.model.kind, CYCLE_DATA);
	assert_false(loop.cycles.choice.unclear);
	assert_int_equal(loop.begun, 100);
	cycles_free(&loop.cycles);
}

static void what_comes_while_a_thread_is_stopped_is_unknown(void **state)
{
	const int64_t now_ns = BEGIN + 101 * PERIOD;
	struct loop loop;

	(void)state;
	learn_data(&loop);
	enters(&loop, now_ns, SYS_recvfrom, 5);
	off(&loop, now_ns + 1000);
	wakes(&loop, now_ns + 100000, 3, false); /* by the signal that stops it */
	on(&loop, now_ns + 110000);
	leaves(&loop, now_ns + 111000, -512);
	enters(&loop, now_ns + 5 * PERIOD, SYS_recvfrom, 5);
	leaves(&loop, now_ns + 5 * PERIOD + 1000, -EAGAIN); /* its time-out has passed */
	assert_int_equal(loop.unknown, 1);
	cycles_free(&loop.cycles);
}

static void an_expiry_on_the_wall_clock_is_converted(void **state)
{
	const struct clock_offsets offsets = {.real_ns = INT64_C(1700000000000000000),
					      .real_before_ns = INT64_C(1700000000300000000),
					      .tai_ns = INT64_C(1700000037000000000)};
	bool wall;

	(void)state;
	assert_int_equal(clock_offsets_monotonic(&offsets, 5000000, 4000000, &wall), 5000000);
	assert_false(wall);
	assert_int_equal(clock_offsets_monotonic(&offsets, offsets.real_ns + 5000000, 4000000, &wall),
			 5000000);
	assert_true(wall);
	assert_int_equal(clock_offsets_monotonic(&offsets, offsets.real_before_ns + 5000000, 4000000, &wall),
			 5000000);
}

static void a_thread_is_read_whatever_its_name(void **state)
{
	static const char text[] =
		"42 (a) R (b) S 1 2 3 4 5 6 77 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 "
		"29 30 31 32 33 34 35 36 88 1 41 42\n";
	struct watched_thread thread;
	struct thread_counts counts = {0};

	(void)state;
	assert_true(thread_parse(text, &thread, &counts));
	assert_int_equal(thread.tid, 42);
	assert_string_equal(thread.name, "a) R (b");
	assert_int_equal(counts.minor_faults, 77);
	assert_int_equal(counts.major_faults, 9);
	assert_int_equal(thread.priority, 88);
	assert_int_equal(thread.policy, SCHED_FIFO);
	for (size_t len = 0; len < strlen(text) - 12; len++) {
		char cut[sizeof(text)] = "";

		memcpy(cut, text, len);
		assert_false(thread_parse(cut, &thread, &counts));
	}
}

static struct blocking_call call_of(long number, uint64_t first, uint64_t second, uint64_t third)
{
	return (struct blocking_call){.number = number, .arguments = {first, second, third}};
}

static void only_a_futex_that_is_a_lock_is_one(void **state)
{
	const struct blocking_call inherits = call_of(SYS_futex, 0, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0),
				   contended = call_of(SYS_futex, 0, FUTEX_WAIT_PRIVATE, 2),
				   condition = call_of(SYS_futex, 0, FUTEX_WAIT_BITSET_PRIVATE, 0),
				   read = call_of(SYS_read, 0, FUTEX_LOCK_PI, 2),
				   wakes_another = call_of(SYS_futex, 0, FUTEX_WAKE_PRIVATE, 1);

	(void)state;
	assert_int_equal(blocking_call_lock(&inherits), LOCK_INHERITS);
	assert_int_equal(blocking_call_lock(&contended), LOCK_PLAIN);
	assert_int_equal(blocking_call_lock(&condition), NO_LOCK);
	assert_int_equal(blocking_call_lock(&read), NO_LOCK);
	assert_true(blocking_call_can_wait(&condition));
	assert_false(blocking_call_can_wait(&wakes_another));
}

static void calls_have_names_and_objects(void **state)
{
	const struct blocking_call sleeps = call_of(SYS_clock_nanosleep, 1, 1, 0),
				   read = call_of(SYS_read, 5, 0, 0), unknown = call_of(100000, 0, 0, 0);
	struct blocking_call narrow = call_of(240, 0x1000, FUTEX_WAIT, 0);
	char room[CALL_NAME_MAX], filter[CALL_FILTER_MAX];

	(void)state;
	assert_string_equal(blocking_call_name(&sleeps, room, sizeof(room)), "clock_nanosleep");
	assert_string_equal(blocking_call_name(&unknown, room, sizeof(room)), "syscall 100000");
	assert_int_equal(blocking_call_fd(&read), 5);
	assert_int_equal(blocking_call_fd(&sleeps), -1);
	assert_int_equal(blocking_call_number("epoll_pwait"), SYS_epoll_pwait);
	assert_int_equal(blocking_call_number("no_such_call"), -1);
	narrow.table = CALLS_32_BIT;
	assert_string_equal(blocking_call_name(&narrow, room, sizeof(room)), "futex");
	blocking_calls_filter(CALLS_NATIVE, filter);
	assert_non_null(strstr(filter, "||id=="));
	assert_true(strlen(filter) < CALL_FILTER_MAX - 64);
}

static bool is_named_in(enum call_table table, const char *name)
{
	char room[CALL_NAME_MAX];

	for (long number = 0; number < 512; number++) {
		struct blocking_call call = call_of(number, 0, 0, 0);

		call.table = table;
		if (!strcmp(blocking_call_name(&call, room, sizeof(room)), name))
			return true;
	}
	return false;
}

static void a_32_bit_program_has_the_same_calls(void **state)
{
	(void)state;
	for (long number = 0; number < 512; number++) {
		const struct blocking_call call = call_of(number, 0, 0, 0);
		char room[CALL_NAME_MAX];
		const char *name = blocking_call_name(&call, room, sizeof(room));

		/* i386 has accept4, and has semtimedop only with 64-bit times */
		if (strncmp(name, "syscall ", 8) != 0 && strcmp(name, "accept") != 0 &&
		    strcmp(name, "semop") != 0)
			assert_true(is_named_in(CALLS_32_BIT, name));
	}
}

static void a_grid_is_found_in_spite_of_skipped_points(void **state)
{
	int64_t times[200];
	struct grid grid;
	size_t count = 0;

	(void)state;
	for (int i = 0; count < 200; i++) {
		if (i % 10 != 3 && i % 10 != 4)
			times[count++] = BEGIN + i * INT64_C(250000) + (int64_t)(i % 3) * 1000;
	}
	assert_true(grid_fit(times, count, &grid));
	assert_true(grid.period_ns > 249990 && grid.period_ns < 250010);
	for (size_t i = 0; i < count; i++)
		times[i] = BEGIN + (int64_t)(i * i) * 13000 + (int64_t)(i % 7) * 90000;
	assert_false(grid_fit(times, count, &grid));
	assert_false(grid_fit(times, 3, &grid));
}

/* A poller whose stops are followed from 0 on. */
struct stopped {
	struct stops stops;
	struct stop done;
	int count;
};

static void interrupted(struct stopped *s, int64_t from_ns, int64_t until_ns, const char *name, bool switches)
{
	struct interrupt entry = {.begins = true}, exit = {.ends = true, .reschedules = switches};

	snprintf(entry.name, sizeof(entry.name), "%s", name);
	s->count += stops_interrupt(&s->stops, from_ns, &entry, &s->done);
	s->count += stops_interrupt(&s->stops, until_ns, &exit, &s->done);
}

static void preempted(struct stopped *s, int64_t from_ns, int64_t until_ns)
{
	s->count += stops_leave(&s->stops, from_ns, "hog", &s->done);
	stops_return(&s->stops, until_ns);
}

static void an_interrupt_and_its_softirq_are_one_stop(void **state)
{
	struct interrupt softirq = {.name = "softirq RCU", .begins = true}, exit = {.ends = true};
	struct stopped s = {0};

	(void)state;
	interrupted(&s, 1000, 5000, "timer interrupt", false);
	s.count += stops_interrupt(&s.stops, 6000, &softirq, &s.done);
	interrupted(&s, 7000, 8000, "irq 9", false); /* nested */
	s.count += stops_interrupt(&s.stops, 20000, &exit, &s.done);
	assert_int_equal(s.count, 0);
	assert_false(stops_settle(&s.stops, 21000, false, &s.done));
	interrupted(&s, 40000, 41000, "irq 9", false);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.done.from_ns, 1000);
	assert_int_equal(s.done.until_ns, 20000);
	assert_string_equal(s.done.by, "softirq RCU");
	assert_true(stops_settle(&s.stops, 50000, false, &s.done));
	assert_int_equal(s.done.from_ns, 40000);
	assert_false(stops_settle(&s.stops, 60000, true, &s.done));
}

static void a_task_belongs_to_the_interrupt_that_lets_it_run(void **state)
{
	struct stopped s = {0}, apart = {0};

	(void)state;
	interrupted(&s, 1000, 5000, "timer interrupt", true);
	preempted(&s, 12000, 90000);
	assert_true(stops_settle(&s.stops, 100000, false, &s.done));
	assert_int_equal(s.done.from_ns, 1000);
	assert_int_equal(s.done.until_ns, 90000);
	assert_string_equal(s.done.by, "hog");
	interrupted(&apart, 1000, 5000, "timer interrupt", false);
	preempted(&apart, 12000, 90000);
	assert_int_equal(apart.count, 1);
	assert_int_equal(apart.done.until_ns, 5000);
}

static void an_nmi_has_lasted_before_its_event(void **state)
{
	const struct interrupt nmi = {.name = "NMI", .begins = true, .ends = true, .lasted_ns = 4000};
	struct stopped s = {0};

	(void)state;
	s.count += stops_interrupt(&s.stops, 9000, &nmi, &s.done);
	assert_true(stops_settle(&s.stops, 20000, false, &s.done));
	assert_int_equal(s.done.from_ns, 5000);
	assert_int_equal(s.done.until_ns, 9000);
}

static void only_stops_that_were_seen_whole_count(void **state)
{
	struct stopped s = {0};

	(void)state;
	stops_begin(&s.stops, 500);
	preempted(&s, 1000, 2000);
	assert_true(stops_settle(&s.stops, 10000, false, &s.done));
	s.count += stops_leave(&s.stops, 20000, NULL, &s.done); /* it sleeps in a call of its own */
	stops_return(&s.stops, 90000);
	assert_false(stops_settle(&s.stops, 100000, false, &s.done));
	s.count += stops_leave(&s.stops, 200000, "hog", &s.done);
	interrupted(&s, 300000, 301000, "irq 9", false); /* the switch back is missing */
	assert_int_equal(s.count, 0);
	assert_int_equal(s.stops.unknown, 1);
	assert_true(stops_settle(&s.stops, 310000, false, &s.done));
	s.count += stops_leave(&s.stops, 400000, "hog", &s.done);
	assert_false(stops_settle(&s.stops, 500000, false, &s.done));
	assert_true(stops_settle(&s.stops, 500000, true, &s.done)); /* it has lasted so long at least */
	assert_int_equal(s.done.until_ns - s.done.from_ns, 100000);
	stops_begin(&s.stops, 600000); /* events were lost until then */
	stops_return(&s.stops, 700000);
	assert_true(stops_settle(&s.stops, 800000, false, &s.done));
	assert_int_equal(s.done.from_ns, 600000);
}

static void interrupts_have_names(void **state)
{
	const struct interrupt_events events = {
		.all = {{.id = 3, .event = "irq/irq_handler_entry", .number = {8, 4}, .action = {12, 4}},
			{.id = 4, .event = "irq/softirq_exit", .number = {8, 4}},
			{.id = 5, .event = "irq_vectors/call_function_entry"},
			{.id = 6, .event = "nmi/nmi_handler", .lasted = {16, 8}}},
		.count = 4};
	unsigned char record[24] = {[8] = 3, [12] = 16, [14] = 5, [16] = 'e', 't', 'h', '0'};
	struct interrupt interrupt;

	(void)state;
	assert_true(interrupt_events_read(&events, 3, record, sizeof(record), 4, &interrupt));
	assert_string_equal(interrupt.name, "irq 3 eth0");
	assert_true(interrupt.begins && !interrupt.ends && interrupt.reschedules);
	assert_true(interrupt_events_read(&events, 3, record, 18, 0, &interrupt)); /* cut off */
	assert_string_equal(interrupt.name, "irq 3 et");
	assert_true(interrupt_events_read(&events, 4, record, sizeof(record), 0, &interrupt));
	assert_string_equal(interrupt.name, "softirq NET_RX");
	assert_true(interrupt.ends && !interrupt.begins && !interrupt.reschedules);
	assert_true(interrupt_events_read(&events, 5, record, sizeof(record), 0, &interrupt));
	assert_string_equal(interrupt.name, "call function interrupt");
	record[20] = 0;
	assert_true(interrupt_events_read(&events, 6, record, sizeof(record), 0, &interrupt));
	assert_true(interrupt.begins && interrupt.ends && interrupt.lasted_ns > 0);
	assert_false(interrupt_events_read(&events, 7, record, sizeof(record), 0, &interrupt));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cycle_is_from_the_release_to_the_next_wait),
		cmocka_unit_test(a_lock_within_the_cycle_does_not_end_it),
		cmocka_unit_test(a_late_wait_that_returns_at_once_is_an_activation),
		cmocka_unit_test(a_release_without_a_wait_is_an_overrun),
		cmocka_unit_test(a_thread_that_hangs_is_stuck),
		cmocka_unit_test(releases_while_events_were_lost_are_unknown),
		cmocka_unit_test(an_interrupted_wait_goes_on),
		cmocka_unit_test(a_grid_may_begin_anew_after_an_overrun),
		cmocka_unit_test(a_grid_may_begin_anew_after_a_sleep_for_no_time),
		cmocka_unit_test(a_grid_follows_timers_that_stay_behind_it),
		cmocka_unit_test(a_response_before_a_release_without_a_wait_takes_a_period),
		cmocka_unit_test(a_loop_that_waits_when_late_will_wait_for_the_points_that_came),
		cmocka_unit_test(a_long_stop_does_not_begin_the_grid_anew),
		cmocka_unit_test(a_woken_thread_may_run_before_an_event_shows_it),
		cmocka_unit_test(a_pause_that_a_signal_interrupts_does_not_end_the_cycle),
		cmocka_unit_test(work_of_two_lengths_is_no_second_sleep),
		cmocka_unit_test(a_relative_sleep_is_no_grid),
		cmocka_unit_test(a_thread_that_others_wake_is_of_data),
		cmocka_unit_test(the_two_futexes_of_a_condition_variable_are_one_wait),
		cmocka_unit_test(what_comes_while_a_thread_is_stopped_is_unknown),
		cmocka_unit_test(an_expiry_on_the_wall_clock_is_converted),
		cmocka_unit_test(a_grid_is_found_in_spite_of_skipped_points),
		cmocka_unit_test(only_a_futex_that_is_a_lock_is_one),
		cmocka_unit_test(calls_have_names_and_objects),
		cmocka_unit_test(a_32_bit_program_has_the_same_calls),
		cmocka_unit_test(a_thread_is_read_whatever_its_name),
		cmocka_unit_test(an_interrupt_and_its_softirq_are_one_stop),
		cmocka_unit_test(a_task_belongs_to_the_interrupt_that_lets_it_run),
		cmocka_unit_test(an_nmi_has_lasted_before_its_event),
		cmocka_unit_test(only_stops_that_were_seen_whole_count),
		cmocka_unit_test(interrupts_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
