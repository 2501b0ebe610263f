/* SPDX-License-Identifier: MIT */
/*
 * The clock of a device that answers only once in a cycle of its own. Its answers come on a grid of its
 * period, so they drift against the cycles of this machine, and the response is a sawtooth: the two loops
 * beat. The thread that drains calls this.
 */
#ifndef RTGAUGE_DEVICE_CLOCK_H
#define RTGAUGE_DEVICE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_CYCLES 65536 /* so many cycles are kept */
#define DEVICE_SLIPS 20	    /* so many slips are listed */
#define BEAT_PARTS 48	    /* into so many parts of equal length, a beat is divided */

struct device_cycle {
	int64_t number, departed_ns, arrived_ns;
};

struct device_clock {
	struct device_cycle *cycles; /* of DEVICE_CYCLES; the caller frees it */
	size_t count;
	int64_t interval_ns; /* of this machine's cycles */
};

/* The times from departure to arrival in one part of all beats. */
struct beat_part {
	int64_t count, min_ns, max_ns, sum_ns;
};

struct device_period {
	int64_t cycles;	      /* that were examined */
	double period_ns;     /* of the device, by this machine's clock */
	int64_t per_interval; /* periods of the device in one of this machine's cycles, nominally */
	/* how well the arrivals fit the grid: the mean resultant length of their phases (Mardia and Jupp,
	 * Directional Statistics, 2.3.1). 1: exactly; 0: not at all */
	double concentration;
	double waiting_share; /* the cycles whose wait for the device's next period explains the response
			       * within a quarter of a period */
	double beats;	      /* how often the two loops slipped against each other, by their periods */
	/* the cycles in which the answer was first seen a period earlier or later than in the cycles before
	 */
	int64_t slips[DEVICE_SLIPS];
	int64_t slip_count; /* all of them; the first DEVICE_SLIPS are listed */
	double beat_cycles; /* cycles of this machine between two slips, by the periods */
	struct beat_part
		parts[BEAT_PARTS]; /* beats laid over each other; the first slip begins the first one */
};

/* Returns false if there is no memory. */
bool device_clock_make(struct device_clock *d, int64_t interval_ns);

/* Takes an answered cycle, in the order of the cycles. Ignores cycles when it has enough. */
void device_clock_take(struct device_clock *d, int64_t number, int64_t departed_ns, int64_t arrived_ns);

/*
 * Finds the period that fits best, near 1, 1/2, 1/3 and 1/4 of the interval. Returns false if the answers do
 * not come by a clock of the device, or too few came to tell: the two loops must have slipped at least once.
 */
bool device_clock_find(const struct device_clock *d, struct device_period *found);

#endif
