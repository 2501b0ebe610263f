/* SPDX-License-Identifier: MIT */
/*
 * One measured quantity on its way from samples to windows, totals and outliers (docs/formats/stream.md). Fed
 * by the thread that drains. Two kinds: one on a grid of releases knows when each activation was to be
 * released, and so where missed ones belong; a timed one has samples that bring their own time, and misses
 * what it is told.
 */
#ifndef RTGAUGE_SERIES_H
#define RTGAUGE_SERIES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/histogram.h"
#include "base/json.h"
#include "base/usage.h"

#define SERIES_OUTLIERS 20
#define SERIES_LABELS 4
#define SERIES_WINDOW_NS INT64_C(1000000000) /* length of a window where none is set */

/* What a measuring thread pushes: a latency, or one of the last two. */
#define SAMPLE_EARLIEST (-(INT64_C(1) << 40)) /* of a series that has `negatives` */
#define SAMPLE_IMPOSSIBLE (SAMPLE_EARLIEST - 1)
#define SAMPLE_LOST(activations) (SAMPLE_IMPOSSIBLE - (int64_t)(activations))

struct moments {
	int64_t count, min_ns, max_ns, sum_ns;
	double m2_ns2;
};

struct window {
	int64_t index, start_ns, end_ns;
	int64_t count, missed, min_ns, max_ns, first_ns;
	double sum_d, sum_d2; /* of the differences to first_ns, so that no digits are lost */
	struct histogram plain, missed_ones;
};

struct outlier {
	int64_t time_ns, value_ns;
};

struct label {
	const char *name, *text;
};

struct series {
	/* set before it is announced */
	unsigned int id;
	int cpu;			    /* -1: it belongs to none */
	const char *metric;		    /* NULL: latency */
	const char *unit;		    /* NULL: ns */
	struct label labels[SERIES_LABELS]; /* beside the CPU; name NULL: none */

	/* set before the first sample; of a timed one by series_timed */
	int64_t window_ns; /* length of a window; 0: SERIES_WINDOW_NS */
	int64_t interval_ns, start_ns;
	int64_t warm_up_count;	     /* activations */
	int64_t total_count;	     /* warm-up and measured activations; INT64_MAX: until stopped */
	int64_t measured_ns;	     /* length of the measured phase; INT64_MAX: until stopped */
	FILE *samples;		     /* NULL: none are kept */
	struct histogram *negatives; /* of a series whose values may be negative: theirs in the open
					window; NULL: a negative value is impossible */

	int64_t position;   /* activations accounted for */
	int64_t reached_ns; /* timed, set before series_end: measured until then; 0: until the last sample */
	bool timed;	    /* set by series_timed */
	bool measuring;	    /* the window is one of the measured phase */
	bool unwritable;    /* the samples file took no more */
	unsigned int outlier_count;
	struct window window;
	struct moments total;
	int64_t missed, lost, impossible;
	int64_t warm_up_done, warm_up_missed, warm_up_max_ns;
	struct outlier outliers[SERIES_OUTLIERS]; /* largest first, whatever the sign */
};

/* Called with each sample of each series that was counted, of the warm-up too: time and value; NULL: nothing.
 * Set before the first one. */
extern void (*series_taken)(const struct series *s, int64_t time_ns, int64_t value_ns);

/* Makes it a timed one: the times before start_ns + warm_up_ns are warm-up, measured_ns (INT64_MAX: until
 * stopped) after that are measured. */
void series_timed(struct series *s, int64_t start_ns, int64_t warm_up_ns, int64_t measured_ns);

/* Gives it `negatives`, for a runtime whose timers may fire before a release. false: there is no memory. */
bool series_take_early(struct series *s);

/* Writes its `series` line. */
void series_announce(const struct series *s, struct json *j);

/* Begins; start_ns, interval_ns and the counts are set. */
void series_begin(struct series *s);

/* One value from the ring; whole windows are written to j. */
void series_feed(struct series *s, int64_t value, struct json *j);

/*
 * One sample of a timed series, not before the one before it; whole windows are written to j. A negative
 * value counts as impossible, unless the series has `negatives`. What comes after the measured phase is not
 * taken: false.
 */
bool series_feed_timed(struct series *s, int64_t time_ns, int64_t value_ns, struct json *j);

/* Of a timed series: what was to be measured at this time and was not, though it would have been at least
 * this value. */
void series_miss_timed(struct series *s, int64_t time_ns, int64_t at_least_ns, struct json *j);

/* Of a series on a grid: what was released before until_ns, or before the end, is missed; each would have
 * been at least the time from its release to now_ns. For a thread that never ran again. */
void series_miss_until(struct series *s, int64_t until_ns, int64_t now_ns, struct json *j);

/* Ends: writes the open window, cut where activations end (of a timed series: where it has reached) if the
 * probe was stopped before its time or had no time set. */
void series_end(struct series *s, bool stopped, struct json *j);

/* Writes the outliers and the summary. usage: what the kernel counted; NULL: unknown. */
void series_summary(const struct series *s, const struct usage *usage, struct json *j);

/* Frees what its histograms have taken, and not the series itself; its figures stay. */
void series_free(struct series *s);

/* How many activations were missed after one with this latency (>= 0). */
static inline int64_t series_missed_after(int64_t latency_ns, int64_t interval_ns)
{
	return latency_ns > interval_ns ? (latency_ns - 1) / interval_ns : 0;
}

#endif
