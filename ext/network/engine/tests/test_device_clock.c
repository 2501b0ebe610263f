// SPDX-License-Identifier: MIT
/* Devices are simulated as they work: a loop of the device's own looks into its mailbox, and answers. Which
 * of its cycles found none or two frames is the truth about slips. Other devices delay their answers, without
 * a clock: nothing may be said about these. */
#include <math.h>
#include <stdlib.h>

#include "ext/network/engine/device_clock.h"
#include "tests/check.h"
#include "tests/cm.h"

#define INTERVAL 1000000
#define SEEDS 20
#define CYCLES 12000
#define TURN 6.283185307179586

static uint64_t random_state;

/* Uniform in [0, 1) (splitmix64). */
static double uniform(void)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

/* A delay that is usually about usual_ns, and seldom much longer. */
static int64_t delay(double usual_ns)
{
	return (int64_t)(usual_ns * (0.7 - 0.3 * log(1 - uniform())));
}

static int64_t departure(int64_t number)
{
	return number * INTERVAL + delay(10000);
}

struct truth {
	int64_t slips, first_slip;
};

/* A device whose loop has this period. In its cycles, it answers all frames that came since the last one. */
static struct truth simulate(struct device_clock *d, double period_ns, int64_t cycles, double usual_ns)
{
	struct truth truth = {0, -1};
	int64_t looked = 0, before = 0, usual = llround(INTERVAL / period_ns);
	double phase = uniform();

	for (int64_t number = 0; number < cycles; number++) {
		int64_t departed_ns = departure(number), there_ns = departed_ns + delay(usual_ns);

		while ((int64_t)(((double)looked + phase) * period_ns) < there_ns)
			looked++;
		if (number && looked - before != usual) {
			truth.slips++;
			if (truth.first_slip < 0)
				truth.first_slip = number;
		}
		before = looked;
		device_clock_take(d, number, departed_ns,
				  (int64_t)(((double)looked + phase) * period_ns) + delay(usual_ns));
	}
	return truth;
}

/* Each part has the mean of a line from slip to slip, which is a period high. The first and the last parts
 * contain slips. */
static void is_sawtooth(const struct device_period *found, double period_ns)
{
	double sign = period_ns * (double)found->per_interval > INTERVAL ? 1 : -1, rise = 0;
	int64_t cycles = 0;

	for (int i = 0; i < BEAT_PARTS; i++)
		cycles += found->parts[i].count;
	assert_int_equal(cycles, found->cycles);
	for (int i = 12; i <= 36; i += 24) {
		const struct beat_part *part = &found->parts[i];

		assert_true(part->min_ns * part->count <= part->sum_ns);
		assert_true(part->max_ns * part->count >= part->sum_ns);
		rise += (i == 12 ? -sign : sign) * (double)part->sum_ns / (double)part->count;
	}
	assert_true(fabs(rise / period_ns - 0.5) < 0.1);
}

static void test_a_device_with_a_clock(void **unused)
{
	static const double drifts[] = {-900e-6, -200e-6, -160e-6, 175e-6, 350e-6, 1500e-6};

	(void)unused;
	for (int seed = 1; seed <= SEEDS; seed++) {
		double drift = drifts[seed % 6], parts = seed % 5 == 0 ? 4 : 1;
		double period_ns = INTERVAL / parts * (1 + drift), beats;
		struct device_clock d;
		struct device_period found;
		struct truth truth;

		random_state = (uint64_t)seed;
		assert_true(device_clock_make(&d, INTERVAL));
		truth = simulate(&d, period_ns, CYCLES, 5000);
		assert_true(device_clock_find(&d, &found));
		assert_int_equal(found.per_interval, (int64_t)parts);
		/* a tenth of a ppm */
		assert_true(fabs(found.period_ns / period_ns - 1) < 1e-7);
		beats = (double)CYCLES * INTERVAL * fabs(1 / period_ns - parts / INTERVAL);
		assert_true(fabs(found.beats - beats) < 0.01);
		/* Near a slip, the simulated loops slip to and fro. */
		assert_true(labs(found.slip_count - llround(beats)) <= 1);
		assert_true(truth.slips >= found.slip_count);
		if (fabs(drift) * INTERVAL > 200)
			assert_true(labs(found.slips[0] - truth.first_slip) <= 100);
		is_sawtooth(&found, period_ns);
		free(d.cycles);
	}
}

static double without(int64_t number)
{
	(void)number;
	return 0;
}

static double random_delay(int64_t number)
{
	(void)number;
	return uniform() * 900000;
}

static double long_tail(int64_t number)
{
	(void)number;
	return -60000 * log(1 - uniform());
}

static double wave(int64_t number)
{
	return 400000 * (1 + sin(TURN * (double)number / 2900));
}

/* A ramp that begins again, but whose height has nothing to do with its slope: no clock. */
static double ramp(int64_t number)
{
	return 650000 * (double)(number % 2300) / 2300;
}

static double ramp_without_end(int64_t number)
{
	return 1900000 * (double)number / CYCLES;
}

static double step(int64_t number)
{
	return number < CYCLES / 2 ? 0 : 500000;
}

static double queue(int64_t number)
{
	static double filled;

	if (number == 0)
		filled = 0;
	filled += (uniform() - 0.5) * 20000;
	filled = filled < 0 ? 0 : filled > 900000 ? 900000 : filled;
	return filled;
}

static void test_devices_without_a_clock(void **unused)
{
	static double (*const devices[])(int64_t) = {without, random_delay,	long_tail, wave,
						     ramp,    ramp_without_end, step,	   queue};

	(void)unused;
	for (size_t kind = 0; kind < sizeof(devices) / sizeof(devices[0]); kind++) {
		for (int seed = 1; seed <= (devices[kind] == random_delay ? SEEDS : 2); seed++) {
			struct device_clock d;
			struct device_period found;

			random_state = (uint64_t)seed;
			assert_true(device_clock_make(&d, INTERVAL));
			for (int64_t number = 0; number < CYCLES; number++) {
				int64_t departed_ns = departure(number);

				device_clock_take(&d, number, departed_ns,
						  departed_ns + delay(20000) +
							  (int64_t)devices[kind](number));
			}
			if (device_clock_find(&d, &found))
				fail_msg("device %zu: %g %g %g", kind, found.concentration,
					 found.waiting_share, found.beats);
			free(d.cycles);
		}
	}
}

static void test_too_few_cycles(void **unused)
{
	struct device_clock d;
	struct device_period found;

	(void)unused;
	assert_true(device_clock_make(&d, INTERVAL));
	assert_false(device_clock_find(&d, &found));
	simulate(&d, 1000500, 199, 5000);
	assert_false(device_clock_find(&d, &found));
	free(d.cycles);
}

/* However long it is measured, the memory is what it was. */
static void test_more_cycles_than_are_kept(void **unused)
{
	struct device_clock d;
	struct device_period found;

	(void)unused;
	random_state = 1;
	assert_true(device_clock_make(&d, INTERVAL));
	simulate(&d, 1000500, 3 * DEVICE_CYCLES, 5000);
	assert_true(device_clock_find(&d, &found));
	assert_int_equal(found.cycles, DEVICE_CYCLES);
	assert_int_equal(d.count, DEVICE_CYCLES);
	assert_true(found.slip_count > DEVICE_SLIPS);
	free(d.cycles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_device_with_a_clock),
		cmocka_unit_test(test_devices_without_a_clock),
		cmocka_unit_test(test_too_few_cycles),
		cmocka_unit_test(test_more_cycles_than_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
