/* SPDX-License-Identifier: MIT */
/*
 * One measured quantity, from samples to windows, totals and outliers (docs/formats/stream.md). The thread
 * that drains feeds it. There are two kinds. A series on a grid knows each release, and so the place of
 * each missed activation. In a timed series, samples have their own times, and the caller reports what was
 * missed.
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
#define SERIES_WINDOW_NS INT64_C(1000000000) /* default length of a window */

/* What a measuring thread pushes: a latency, or one of these two special values. */
#define SAMPLE_EARLIEST (-(INT64_C(1) << 40)) /* in a series that has `negatives` */
#define SAMPLE_IMPOSSIBLE (SAMPLE_EARLIEST - 1)
#define SAMPLE_LOST(activations) (SAMPLE_IMPOSSIBLE - (int64_t)(activations))

struct moments {
	int64_t count, min_ns, max_ns, sum_ns;
	double m2_ns2;
};

struct window {
	int64_t index, start_ns, end_ns;
	int64_t count, missed, min_ns, max_ns, first_ns;
	double sum_d, sum_d2; /* sums of differences to first_ns and their squares, to keep all digits */
	struct histogram plain, missed_ones;
};

struct outlier {
	int64_t time_ns, value_ns;
};

struct label {
	const char *name, *text;
};

struct series {
	/* set before the series is announced */
	unsigned int id;
	int cpu;			    /* -1: none */
	const char *metric;		    /* NULL: latency */
	const char *unit;		    /* NULL: ns */
	struct label labels[SERIES_LABELS]; /* labels in addition to the CPU; name NULL: none */

	/* Set before the first sample; in a timed series, series_timed sets them. */
	int64_t window_ns; /* length of a window; 0: SERIES_WINDOW_NS */
	int64_t interval_ns, start_ns;
	int64_t warm_up_count; /* activations */
	int64_t total_count;   /* numbers of warm-up and measured activations; INT64_MAX: until stopped */
	int64_t measured_ns;   /* length of the measured phase; INT64_MAX: until stopped */
	FILE *samples;	       /* NULL: no samples are kept */
	struct histogram *negatives; /* if values may be negative: their counts in the open window; NULL: a
				 negative value is impossible */

	int64_t position;   /* activations that were accounted for */
	int64_t reached_ns; /* timed, set before series_end: the time until which it was measured; 0: until
			       the last sample */
	bool timed;	    /* set by series_timed */
	bool measuring;	    /* the window is in the measured phase */
	bool unwritable;    /* writing to the samples file failed */
	unsigned int outlier_count;
	struct window window;
	struct moments total;
	int64_t missed, lost, impossible;
	int64_t warm_up_done, warm_up_missed, warm_up_max_ns;
	struct outlier outliers[SERIES_OUTLIERS]; /* the largest first, whatever the sign */
};

/* Called with the time and value of each counted sample of each series, even in the warm-up; NULL: not
 * called. Set before the first sample. */
extern void (*series_taken)(const struct series *s, int64_t time_ns, int64_t value_ns);

/* Makes the series a timed one. Times before start_ns + warm_up_ns are warm-up; the measured_ns after that
 * (INT64_MAX: until stopped) are measured. */
void series_timed(struct series *s, int64_t start_ns, int64_t warm_up_ns, int64_t measured_ns);

/* Gives the series `negatives`, for a runtime whose timers may fire before a release. Returns false if
 * there is no memory. */
bool series_take_early(struct series *s);

/* Writes the `series` line. */
void series_announce(const struct series *s, struct json *j);

/* Begins the series. start_ns, interval_ns and the counts must be set. */
void series_begin(struct series *s);

/* Takes one value from the ring, and writes complete windows to j. */
void series_feed(struct series *s, int64_t value, struct json *j);

/*
 * Takes one sample of a timed series, in order of time; writes complete windows to j. A negative value
 * counts as impossible, unless the series has `negatives`. Returns false, without taking it, after the
 * measured phase.
 */
bool series_feed_timed(struct series *s, int64_t time_ns, int64_t value_ns, struct json *j);

/* In a timed series: counts a value that was due at this time but was not measured. It would have been at
 * least this large. */
void series_miss_timed(struct series *s, int64_t time_ns, int64_t at_least_ns, struct json *j);

/* In a series on a grid: counts releases before until_ns, or before the end, as missed. Each would have
 * been at least the time from its release to now_ns. For a thread that never ran again. */
void series_miss_until(struct series *s, int64_t until_ns, int64_t now_ns, struct json *j);

/* Ends the series, and writes the open window. If the probe was stopped early or had no set time, the
 * window is cut at the last activation (in a timed series, at the time reached). */
void series_end(struct series *s, bool stopped, struct json *j);

/* Writes the outliers and the summary. usage: the kernel's counts; NULL: unknown. */
void series_summary(const struct series *s, const struct usage *usage, struct json *j);

/* Frees the memory of the histograms, but not the series. Its figures stay. */
void series_free(struct series *s);

/* Returns how many activations were missed after one with this latency (>= 0). */
static inline int64_t series_missed_after(int64_t latency_ns, int64_t interval_ns)
{
	return latency_ns > interval_ns ? (latency_ns - 1) / interval_ns : 0;
}

#endif
