// SPDX-License-Identifier: MIT
#include "ext/recorder/engine/fold.h"

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/json.h"

#define WINDOW "{\"type\":\"window\","
#define CLOCKS "{\"type\":\"clocks\","
#define SERIES_MAX 256
#define BINS (2 * HISTOGRAM_BINS - 1) /* with the negative ones */
#define SUSPENDED_NS (NS_PER_S / 100)
#define SET_NS (NS_PER_S / 10) /* as in ext/recorder/clocks.py */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct line {
	const char *text; /* its end is a NUL */
	size_t len;
	int series; /* of a window; -1: it is another line */
};

/* The figures of a window, or of several. */
struct figures {
	int64_t start_ns, end_ns, count, missed, min_ns, max_ns, sum_ns;
	double m2_ns2;
};

/* Returns the text behind a key; NULL: the line does not have it. */
static const char *behind(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? at + strlen(key) : NULL;
}

static bool read_int(const char *line, const char *key, int64_t *value)
{
	const char *at = behind(line, key);
	char *end;

	if (!at)
		return false;
	*value = strtoll(at, &end, 10);
	return end != at;
}

static bool read_real(const char *line, const char *key, double *value)
{
	const char *at = behind(line, key);
	char *end;

	if (!at)
		return false;
	*value = strtod(at, &end);
	return end != at;
}

/* Reads a number in Base64 VLQ; *text moves behind it. */
static bool read_vlq(const char **text, int64_t *value)
{
	uint64_t all = 0;

	for (unsigned int shift = 0; shift < 60; shift += 5) {
		const char *digit = **text ? strchr(digits, **text) : NULL;
		uint64_t bits = digit ? (uint64_t)(digit - digits) : 0;

		if (!digit)
			return false;
		++*text;
		all |= (bits & 31) << shift;
		if (bits < 32) {
			*value = all & 1 ? -(int64_t)(all >> 1) : (int64_t)(all >> 1);
			return true;
		}
	}
	return false;
}

/* Adds the bins of a window. counts: NULL: only look whether they are right. */
static bool add_bins(const char *line, const char *key, int64_t wanted, int64_t *counts)
{
	const char *at = behind(line, key);
	int64_t bin = 0, sum = 0, distance, count;

	if (!at)
		return false;
	for (bool first = true; *at != '"'; first = false) {
		if (!read_vlq(&at, &distance) || !read_vlq(&at, &count))
			return false;
		bin += distance; /* 60 bits and a bin fit */
		if ((!first && distance <= 0) || bin <= -HISTOGRAM_BINS || bin >= HISTOGRAM_BINS)
			return false;
		if (count <= 0 || count > wanted - sum)
			return false;
		sum += count;
		if (counts)
			counts[bin + HISTOGRAM_BINS - 1] += count;
	}
	return sum == wanted;
}

static bool read_figures(const char *line, struct figures *f)
{
	*f = (struct figures){0};
	if (!strstr(line, "\"phase\":\"measure\"") || !read_int(line, "\"start_ns\":", &f->start_ns) ||
	    !read_int(line, "\"end_ns\":", &f->end_ns) || !read_int(line, "\"count\":", &f->count) ||
	    !read_int(line, "\"missed\":", &f->missed) || !read_int(line, "\"sum_ns\":", &f->sum_ns) ||
	    !read_real(line, "\"m2_ns2\":", &f->m2_ns2) || f->count < 0 || f->missed < 0 ||
	    !(f->m2_ns2 >= 0 && f->m2_ns2 <= DBL_MAX))
		return false;
	if (f->count &&
	    (!read_int(line, "\"min_ns\":", &f->min_ns) || !read_int(line, "\"max_ns\":", &f->max_ns)))
		return false;
	return add_bins(line, "\"bins\":\"", f->count, NULL) &&
	       add_bins(line, "\"missed_bins\":\"", f->missed, NULL);
}

/* Returns whether the figures have room for those of another window, and adds them then. */
static bool join(struct figures *all, const struct figures *f)
{
	double n = (double)f->count, m = (double)all->count;
	struct figures sum = *all;

	if (__builtin_add_overflow(all->count, f->count, &sum.count) ||
	    __builtin_add_overflow(all->missed, f->missed, &sum.missed) ||
	    __builtin_add_overflow(all->sum_ns, f->sum_ns, &sum.sum_ns))
		return false;
	if (f->start_ns < sum.start_ns)
		sum.start_ns = f->start_ns;
	if (f->end_ns > sum.end_ns)
		sum.end_ns = f->end_ns;
	if (f->count) {
		sum.min_ns = all->count && all->min_ns < f->min_ns ? all->min_ns : f->min_ns;
		sum.max_ns = all->count && all->max_ns > f->max_ns ? all->max_ns : f->max_ns;
		sum.m2_ns2 = all->m2_ns2 + f->m2_ns2;
	}
	if (f->count && all->count) { /* as total_merge in engine/base/series.c */
		double delta = (double)f->sum_ns / n - (double)all->sum_ns / m;

		sum.m2_ns2 += delta * delta * n * m / (n + m);
	}
	*all = sum;
	return true;
}

/* Bits as a text: six in each digit of Base64, the highest first; the last digit is filled with 0. */
struct bits {
	FILE *out;
	unsigned int value, count;
};

static void put_bit(struct bits *bits, unsigned int bit)
{
	bits->value = bits->value << 1 | bit;
	if (++bits->count == 6) {
		putc(digits[bits->value], bits->out);
		bits->value = bits->count = 0;
	}
}

/* Writes a number > 0 in the Elias gamma code: as many 0 as bits follow its highest one, then its bits. */
static void put_gamma(struct bits *bits, uint64_t number)
{
	int last = 63 - __builtin_clzll(number);

	for (int i = 0; i < last; i++)
		put_bit(bits, 0);
	for (int i = last; i >= 0; i--)
		put_bit(bits, (unsigned int)(number >> i & 1));
}

/* Writes each bin as its distance to the one before, at first to -HISTOGRAM_BINS, and its count. This is half
 * as long as in Base64 VLQ. */
static void bins_json(const int64_t *counts, const char *key, struct json *j)
{
	struct bits bits = {.out = j->out};
	int before = -1;

	json_vlq_open(j, key);
	for (int bin = 0; bin < BINS; bin++) {
		if (!counts[bin])
			continue;
		put_gamma(&bits, (uint64_t)(bin - before));
		put_gamma(&bits, (uint64_t)counts[bin]);
		before = bin;
	}
	while (bits.count)
		put_bit(&bits, 0);
	json_vlq_close(j);
}

/* Folds the windows of one series. bins: room for two histograms. */
static void write_folded(const struct line *lines, size_t count, int series, int64_t *bins, FILE *out)
{
	struct figures all = {.start_ns = INT64_MAX, .end_ns = INT64_MIN}, f;
	bool any = false;
	struct json j;

	for (size_t i = 0; i < count; i++) {
		if (lines[i].series != series)
			continue;
		if (!any)
			memset(bins, 0, (size_t)2 * BINS * sizeof(*bins));
		if (!read_figures(lines[i].text, &f) || !join(&all, &f)) {
			fprintf(out, "%s\n", lines[i].text); /* there is no number for so many */
			continue;
		}
		add_bins(lines[i].text, "\"bins\":\"", f.count, bins);
		add_bins(lines[i].text, "\"missed_bins\":\"", f.missed, bins + BINS);
		any = true;
	}
	if (!any)
		return;
	json_start(&j, out);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "folded");
	json_int(&j, "series", series);
	json_int(&j, "start_ns", all.start_ns);
	json_int(&j, "end_ns", all.end_ns);
	json_int(&j, "count", all.count);
	json_int(&j, "missed", all.missed);
	if (all.count) {
		json_int(&j, "min_ns", all.min_ns);
		json_int(&j, "max_ns", all.max_ns);
	} else {
		json_null(&j, "min_ns");
		json_null(&j, "max_ns");
	}
	json_int(&j, "sum_ns", all.sum_ns);
	json_real(&j, "m2_ns2", all.m2_ns2);
	bins_json(bins, "bins", &j);
	bins_json(bins + BINS, "missed_bins", &j);
	json_close(&j, '}');
	json_line(&j);
}

/* Returns whether the clocks of two lines differ by a suspend or a set wall clock, or cannot be read. */
static bool jumped(const char *before, const char *line)
{
	static const char *const keys[] = {"\"monotonic_ns\":", "\"boottime_ns\":", "\"realtime_ns\":"};
	int64_t passed_ns[3], was_ns, is_ns, slept_ns, set_ns;

	for (int i = 0; i < 3; i++) {
		if (!read_int(before, keys[i], &was_ns) || !read_int(line, keys[i], &is_ns) ||
		    __builtin_sub_overflow(is_ns, was_ns, &passed_ns[i]))
			return true;
	}
	if (__builtin_sub_overflow(passed_ns[1], passed_ns[0], &slept_ns) ||
	    __builtin_sub_overflow(passed_ns[2], passed_ns[1], &set_ns))
		return true;
	return slept_ns >= SUSPENDED_NS || set_ns >= SET_NS || set_ns <= -SET_NS;
}

/* Returns the lines, whose ends become NULs; malloc'ed. *count: how many. */
static struct line *split(char *text, size_t len, size_t *count)
{
	struct line *lines;
	size_t most = 1, n = 0;
	char *end = text + len;

	for (const char *at = text; (at = memchr(at, '\n', (size_t)(end - at))); at++)
		most++;
	lines = calloc(most, sizeof(*lines));
	for (char *at = text; lines && at < end; n++) {
		char *stop = memchr(at, '\n', (size_t)(end - at));
		int64_t series = -1;
		struct figures f;

		stop = stop ? stop : end;
		*stop = '\0';
		if (!strncmp(at, WINDOW, sizeof(WINDOW) - 1) && strlen(at) == (size_t)(stop - at) &&
		    (!read_int(at, "\"series\":", &series) || series < 0 || series >= SERIES_MAX ||
		     !read_figures(at, &f)))
			series = -1;
		lines[n] = (struct line){at, (size_t)(stop - at), (int)series};
		at = stop + 1;
	}
	*count = n;
	return lines;
}

static void write_session(const struct line *lines, size_t count, size_t first, size_t last, int64_t *bins,
			  FILE *out)
{
	const char *clocks = NULL; /* the last ones that were written */

	for (size_t i = 0; i < count; i++) {
		const char *text = lines[i].text;
		bool are_clocks = !strncmp(text, CLOCKS, sizeof(CLOCKS) - 1);

		if (lines[i].series < 0 &&
		    !(are_clocks && i > first && i < last && clocks && !jumped(clocks, text))) {
			fwrite(text, 1, lines[i].len, out);
			putc('\n', out);
			clocks = are_clocks ? text : clocks;
		}
		for (int series = 0; i == last && series < SERIES_MAX; series++)
			write_folded(lines, count, series, bins, out);
	}
}

char *fold_session(char *text, size_t *len)
{
	size_t count = 0, first, last, size = 0;
	struct line *lines = split(text, *len, &count);
	int64_t *bins = calloc((size_t)2 * BINS, sizeof(*bins));
	char *folded = NULL;
	FILE *out = NULL;
	bool failed = true;

	for (first = 0; lines && first < count && lines[first].series < 0;)
		first++;
	for (last = count; last && lines && lines[last - 1].series < 0;)
		last--;
	if (lines && bins && last)
		out = open_memstream(&folded, &size);
	if (out) {
		write_session(lines, count, first, last - 1, bins, out);
		failed = ferror(out);
		failed = fclose(out) || failed;
	}
	free(lines);
	free(bins);
	if (failed) {
		free(folded);
		return NULL;
	}
	*len = size;
	return folded;
}
