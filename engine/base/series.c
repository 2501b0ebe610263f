// SPDX-License-Identifier: MIT
#include "base/series.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void (*series_taken)(const struct series *s, int64_t time_ns, int64_t value_ns);

static int64_t saturating_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t release_ns(const struct series *s, int64_t position)
{
	return s->start_ns + position * s->interval_ns;
}

static int64_t phase_start_ns(const struct series *s)
{
	return s->measuring ? release_ns(s, s->warm_up_count) : s->start_ns;
}

static int64_t phase_end_ns(const struct series *s)
{
	int64_t measured_start = release_ns(s, s->warm_up_count);

	return s->measuring ? saturating_add(measured_start, s->measured_ns) : measured_start;
}

static void window_open(struct series *s, int64_t index)
{
	struct window *w = &s->window;
	int64_t end = phase_end_ns(s), length = s->window_ns ? s->window_ns : SERIES_WINDOW_NS;

	w->index = index;
	w->start_ns = phase_start_ns(s) + index * length;
	w->end_ns = w->start_ns + length < end ? w->start_ns + length : end;
	w->count = 0;
	w->missed = 0;
	w->sum_d = 0;
	w->sum_d2 = 0;
	histogram_clear(&w->plain);
	histogram_clear(&w->missed_ones);
	if (s->negatives)
		histogram_clear(s->negatives);
}

static void total_merge(struct moments *total, const struct window *w, int64_t sum_ns, double m2)
{
	double n = (double)w->count, m = (double)total->count;

	if (!w->count)
		return;
	if (!total->count) {
		*total = (struct moments){w->count, w->min_ns, w->max_ns, sum_ns, m2};
		return;
	}
	/* Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances
	 * (1979) */
	double delta = (double)sum_ns / n - (double)total->sum_ns / m;

	total->m2_ns2 += m2 + delta * delta * n * m / (n + m);
	total->count += w->count;
	total->sum_ns += sum_ns;
	if (w->min_ns < total->min_ns)
		total->min_ns = w->min_ns;
	if (w->max_ns > total->max_ns)
		total->max_ns = w->max_ns;
}

static void window_close(struct series *s, struct json *j)
{
	const struct window *w = &s->window;
	int64_t sum_ns = 0;
	double m2 = 0;

	if (w->count) {
		sum_ns = w->first_ns * w->count + (int64_t)w->sum_d;
		m2 = w->sum_d2 - w->sum_d * w->sum_d / (double)w->count;
		if (m2 < 0)
			m2 = 0;
	}
	json_open(j, NULL, '{');
	json_str(j, "type", "window");
	json_uint(j, "series", s->id);
	json_str(j, "phase", s->measuring ? "measure" : "warm-up");
	json_int(j, "index", w->index);
	json_int(j, "start_ns", w->start_ns);
	json_int(j, "end_ns", w->end_ns);
	json_int(j, "count", w->count);
	json_int(j, "missed", w->missed);
	if (w->count) {
		json_int(j, "min_ns", w->min_ns);
		json_int(j, "max_ns", w->max_ns);
	} else {
		json_null(j, "min_ns");
		json_null(j, "max_ns");
	}
	json_int(j, "sum_ns", sum_ns);
	json_real(j, "m2_ns2", m2);
	histogram_json(s->negatives, &w->plain, "bins", j);
	histogram_json(NULL, &w->missed_ones, "missed_bins", j);
	json_close(j, '}');
	json_line(j);

	if (s->measuring) {
		total_merge(&s->total, w, sum_ns, m2);
		s->missed += w->missed;
	} else {
		s->warm_up_done += w->count;
		s->warm_up_missed += w->missed;
		if (w->count && w->max_ns > s->warm_up_max_ns)
			s->warm_up_max_ns = w->max_ns;
	}
}

/* Opens the window that holds this activation. */
static void roll(struct series *s, int64_t position, struct json *j)
{
	while (release_ns(s, position) >= s->window.end_ns) {
		window_close(s, j);
		if (!s->measuring && s->window.end_ns == phase_end_ns(s)) {
			s->measuring = true;
			window_open(s, 0);
		} else {
			window_open(s, s->window.index + 1);
		}
	}
}

static void keep_outlier(struct series *s, int64_t value, int64_t time_ns)
{
	unsigned int at = s->outlier_count;

	if (at == SERIES_OUTLIERS && llabs(value) <= llabs(s->outliers[at - 1].value_ns))
		return;
	if (at < SERIES_OUTLIERS)
		s->outlier_count++;
	else
		at--;
	for (; at && llabs(s->outliers[at - 1].value_ns) < llabs(value); at--)
		s->outliers[at] = s->outliers[at - 1];
	s->outliers[at] = (struct outlier){time_ns, value};
}

static void take_sample(struct series *s, int64_t value)
{
	struct window *w = &s->window;
	double d;

	if (value < 0 ? !histogram_add(s->negatives, -value) : !histogram_add(&w->plain, value)) {
		s->lost++;
		return;
	}
	if (!w->count) {
		w->first_ns = value;
		w->min_ns = value;
		w->max_ns = value;
	}
	w->count++;
	if (value < w->min_ns)
		w->min_ns = value;
	if (value > w->max_ns)
		w->max_ns = value;
	d = (double)(value - w->first_ns);
	w->sum_d += d;
	w->sum_d2 += d * d;
	if (s->measuring)
		keep_outlier(s, value, release_ns(s, s->position));
	if (series_taken)
		series_taken(s, release_ns(s, s->position), value);
}

static void take_missed(struct series *s, int64_t would_have_been_ns)
{
	if (histogram_add(&s->window.missed_ones, would_have_been_ns))
		s->window.missed++;
	else
		s->lost++;
}

/* The windows treat a timed series like a series with a release each ns. */
void series_timed(struct series *s, int64_t start_ns, int64_t warm_up_ns, int64_t measured_ns)
{
	s->timed = true;
	s->interval_ns = 1;
	s->start_ns = start_ns;
	s->warm_up_count = warm_up_ns;
	s->measured_ns = measured_ns;
	s->total_count = saturating_add(warm_up_ns, measured_ns);
}

void series_announce(const struct series *s, struct json *j)
{
	json_open(j, NULL, '{');
	json_str(j, "type", "series");
	json_uint(j, "series", s->id);
	json_str(j, "metric", s->metric ? s->metric : "latency");
	json_str(j, "unit", s->unit ? s->unit : "ns");
	json_open(j, "labels", '{');
	if (s->cpu >= 0)
		json_int(j, "cpu", s->cpu);
	for (size_t i = 0; i < SERIES_LABELS && s->labels[i].name; i++)
		json_str(j, s->labels[i].name, s->labels[i].text);
	json_close(j, '}');
	json_close(j, '}');
	json_line(j);
}

void series_begin(struct series *s)
{
	s->measuring = s->warm_up_count == 0;
	s->warm_up_max_ns = INT64_MIN;
	window_open(s, 0);
}

void series_feed(struct series *s, int64_t value, struct json *j)
{
	int64_t missed;

	if (value < SAMPLE_IMPOSSIBLE) {
		s->lost += SAMPLE_LOST(0) - value;
		s->position += SAMPLE_LOST(0) - value;
		return;
	}
	if (s->position >= s->total_count) { /* no window is left for it */
		s->impossible++;
		return;
	}
	roll(s, s->position, j);
	if (value == SAMPLE_IMPOSSIBLE || (value < 0 && !s->negatives)) {
		s->impossible++;
		s->position++;
		return;
	}
	if (s->samples && fwrite(&value, sizeof(value), 1, s->samples) != 1)
		s->unwritable = true;
	take_sample(s, value);
	s->position++;
	missed = series_missed_after(value, s->interval_ns);
	for (int64_t m = 1; m <= missed && s->position < s->total_count; m++) {
		roll(s, s->position, j);
		take_missed(s, value - m * s->interval_ns);
		s->position++;
	}
}

void series_miss_until(struct series *s, int64_t until_ns, int64_t now_ns, struct json *j)
{
	for (; s->position < s->total_count && release_ns(s, s->position) < until_ns; s->position++) {
		int64_t waited_ns = now_ns - release_ns(s, s->position);

		roll(s, s->position, j);
		take_missed(s, waited_ns > 0 ? waited_ns : 0);
	}
}

/* Opens the window of this time. Returns false if it is after the measured phase. */
static bool reach_time(struct series *s, int64_t time_ns, struct json *j)
{
	int64_t position = time_ns > s->start_ns ? time_ns - s->start_ns : 0;

	if (position >= s->total_count)
		return false;
	if (position > s->position)
		s->position = position;
	roll(s, s->position, j);
	return true;
}

bool series_feed_timed(struct series *s, int64_t time_ns, int64_t value_ns, struct json *j)
{
	int64_t sample[2];

	if (!reach_time(s, time_ns, j))
		return false;
	if (value_ns < 0 && !s->negatives) {
		s->impossible++;
		return true;
	}
	sample[0] = release_ns(s, s->position);
	sample[1] = value_ns;
	if (s->samples && fwrite(sample, sizeof(sample), 1, s->samples) != 1)
		s->unwritable = true;
	take_sample(s, value_ns);
	return true;
}

void series_miss_timed(struct series *s, int64_t time_ns, int64_t at_least_ns, struct json *j)
{
	if (!reach_time(s, time_ns, j))
		return;
	take_missed(s, at_least_ns > 0 ? at_least_ns : 0);
}

/* A timed series ends after its last sample, and not before the time until which it was measured. */
static void reach(struct series *s)
{
	int64_t reached = s->reached_ns - s->start_ns;

	if (s->position || s->total.count || s->window.count || s->warm_up_done)
		s->position++;
	if (reached > s->position)
		s->position = reached < s->total_count ? reached : s->total_count;
}

void series_end(struct series *s, bool stopped, struct json *j)
{
	if (s->timed)
		reach(s);
	if (s->total_count == INT64_MAX || (stopped && s->position < s->total_count)) {
		if (s->position)
			roll(s, s->position - 1, j);
		if (release_ns(s, s->position) < s->window.end_ns)
			s->window.end_ns = release_ns(s, s->position);
		if (s->window.end_ns > s->window.start_ns)
			window_close(s, j);
		return;
	}
	for (;;) {
		window_close(s, j);
		if (s->measuring && s->window.end_ns == phase_end_ns(s))
			return;
		if (!s->measuring && s->window.end_ns == phase_end_ns(s)) {
			s->measuring = true;
			window_open(s, 0);
		} else {
			window_open(s, s->window.index + 1);
		}
	}
}

static void maybe_int(struct json *j, const char *key, int64_t value, bool known)
{
	if (known)
		json_int(j, key, value);
	else
		json_null(j, key);
}

void series_summary(const struct series *s, const struct usage *usage, struct json *j)
{
	for (unsigned int i = 0; i < s->outlier_count; i++) {
		json_open(j, NULL, '{');
		json_str(j, "type", "outlier");
		json_uint(j, "series", s->id);
		json_int(j, "time_ns", s->outliers[i].time_ns);
		json_int(j, "value_ns", s->outliers[i].value_ns);
		maybe_int(j, "cpu", s->cpu, s->cpu >= 0);
		json_close(j, '}');
		json_line(j);
	}
	json_open(j, NULL, '{');
	json_str(j, "type", "summary");
	json_uint(j, "series", s->id);
	json_int(j, "count", s->total.count);
	json_int(j, "missed", s->missed);
	maybe_int(j, "min_ns", s->total.min_ns, s->total.count > 0);
	maybe_int(j, "max_ns", s->total.max_ns, s->total.count > 0);
	json_int(j, "sum_ns", s->total.sum_ns);
	json_real(j, "m2_ns2", s->total.m2_ns2);
	json_int(j, "lost", s->lost);
	json_int(j, "impossible", s->impossible);
	json_open(j, "warm_up", '{');
	json_int(j, "count", s->warm_up_done);
	json_int(j, "missed", s->warm_up_missed);
	maybe_int(j, "max_ns", s->warm_up_max_ns, s->warm_up_max_ns != INT64_MIN);
	json_close(j, '}');
	json_open(j, "thread", '{');
	maybe_int(j, "voluntary_switches", usage ? usage->voluntary_switches : 0,
		  usage && !USAGE_OF_COKERNEL);
	maybe_int(j, "involuntary_switches", usage ? usage->involuntary_switches : 0,
		  usage && !USAGE_OF_COKERNEL);
	maybe_int(j, "minor_faults", usage ? usage->minor_faults : 0, usage && usage->minor_faults >= 0);
	maybe_int(j, "major_faults", usage ? usage->major_faults : 0, usage && usage->major_faults >= 0);
	maybe_int(j, "run_delay_ns", usage ? usage->run_delay_ns : 0, usage && usage->run_delay_ns >= 0);
	maybe_int(j, "cpu_ns", usage ? usage->cpu_ns : 0, usage);
	if (USAGE_OF_COKERNEL) {
		maybe_int(j, "context_switches", usage ? usage->voluntary_switches : 0,
			  usage && usage->voluntary_switches >= 0);
		maybe_int(j, "mode_switches", usage ? usage->mode_switches : 0,
			  usage && usage->mode_switches >= 0);
	}
	json_close(j, '}');
	json_close(j, '}');
	json_line(j);
}

bool series_take_early(struct series *s)
{
	s->negatives = memory_get(sizeof(*s->negatives));
	return s->negatives != NULL;
}

void series_free(struct series *s)
{
	histogram_free(&s->window.plain);
	histogram_free(&s->window.missed_ones);
	if (s->negatives)
		histogram_free(s->negatives);
}
