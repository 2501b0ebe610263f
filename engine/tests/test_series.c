// SPDX-License-Identifier: MIT
/*
 * A series against a plain model: random pushes of a measuring thread; every activation is kept in an
 * array, and each window is calculated from that array.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/samples_file.h"
#include "base/series.h"
#include "tests/check.h"
#include "tests/cm.h"

#define US INT64_C(1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define START (123456 * SECOND + 789)

enum fate { MEASURED, MISSED, LOST, IMPOSSIBLE };

/* A case: its parameters, the outcome of each activation, and the engine's output. */
struct world {
	int64_t interval, warm_up, total, measured; /* ns, activations, activations, ns */
	bool stopped;
	int64_t done; /* activations that were fed */
	enum fate *fate;
	int64_t *value; /* the latency of the activation; of a missed one, what it would have been */
	struct series series;
	char *text;
	char *samples_dir;
};

/* The spread of the latencies: one activation in `rare` has one up to `gap_ns`, the others are below the
 * interval. */
struct spread {
	int64_t rare, gap_ns;
	bool trouble; /* also lost and impossible ones */
};

static int64_t choose(uint64_t *random, const struct world *w, const struct spread *spread)
{
	int64_t bound = next_random(random) % (uint64_t)spread->rare ? w->interval : spread->gap_ns;

	return (int64_t)(next_random(random) % (uint64_t)(bound + 1));
}

static void feed(struct world *w, uint64_t seed, const struct spread *spread, int64_t end, struct json *j)
{
	uint64_t random = seed;

	while (w->done < end) {
		int64_t value = choose(&random, w, spread), missed, n;

		if (spread->trouble && next_random(&random) % 50 == 0) {
			n = 1 + (int64_t)(next_random(&random) % 5);
			if (n > w->total - w->done)
				n = w->total - w->done;
			series_feed(&w->series, SAMPLE_LOST(n), j);
			for (; n; n--)
				w->fate[w->done++] = LOST;
			continue;
		}
		if (spread->trouble && next_random(&random) % 50 == 0) {
			series_feed(&w->series, SAMPLE_IMPOSSIBLE, j);
			w->fate[w->done++] = IMPOSSIBLE;
			continue;
		}
		series_feed(&w->series, value, j);
		w->fate[w->done] = MEASURED;
		w->value[w->done++] = value;
		/* A release is missed if it was strictly before the return to waiting. */
		for (missed = 1; w->done < w->total && missed * w->interval < value; missed++) {
			w->fate[w->done] = MISSED;
			w->value[w->done++] = value - missed * w->interval;
		}
	}
}

static void run(struct world *w, uint64_t seed, const struct spread *spread, int64_t stop_at)
{
	struct json j;
	size_t size;
	int64_t room = w->total < INT64_MAX ? w->total : stop_at + spread->gap_ns / w->interval + 10;

	w->fate = calloc((size_t)room, sizeof(*w->fate));
	w->value = calloc((size_t)room, sizeof(*w->value));
	w->series = (struct series){
		.id = 4,
		.cpu = 1,
		.interval_ns = w->interval,
		.start_ns = START,
		.warm_up_count = w->warm_up,
		.total_count = w->total,
		.measured_ns = w->measured,
	};
	if (w->samples_dir) {
		w->series.samples = samples_open(w->samples_dir, 4);
		assert_non_null(w->series.samples);
		samples_begin(&w->series);
	}
	json_start(&j, open_memstream(&w->text, &size));
	series_begin(&w->series);
	feed(w, seed, spread, stop_at < w->total ? stop_at : w->total, &j);
	w->stopped = w->done < w->total;
	series_end(&w->series, w->stopped, &j);
	series_summary(&w->series, NULL, &j);
	fclose(j.out);
	if (w->samples_dir)
		assert_true(samples_close(&w->series));
}

static void discard(struct world *w)
{
	series_free(&w->series);
	free(w->fate);
	free(w->value);
	free(w->text);
}

/* Compares the bins after key with the histogram; returns their sum. */
static int64_t check_bins(const char *line, const char *key, const struct histogram *h)
{
	char quoted[32];
	const char *at;
	int64_t sum = 0, last = -1;

	snprintf(quoted, sizeof(quoted), "\"%s\":\"", key);
	at = strstr(line, quoted);
	assert_non_null(at);
	at += strlen(quoted);
	while (*at != '"') {
		int64_t bin = (last < 0 ? 0 : last) + read_vlq(&at), count = read_vlq(&at);

		assert_true(bin > last && bin < HISTOGRAM_BINS && count > 0);
		assert_int_equal(histogram_count(h, (uint32_t)bin), count);
		last = bin;
		sum += count;
	}
	return sum;
}

static bool near(double a, long double b)
{
	long double scale = fabsl(b) > 1 ? fabsl(b) : 1;

	return fabsl((long double)a - b) <= scale * 1e-9L;
}

static int64_t check_extreme(const char *line, const char *key, int64_t value, int64_t count)
{
	if (count)
		assert_int_equal(field_int(line, key), value);
	else
		assert_true(field_is(line, key, "null"));
	return value;
}

struct sums {
	int64_t count, missed, min, max, sum;
	long double m2;
};

/* The figures of activations from..to-1, in two passes. plain and filled may be NULL. */
static struct sums naive(const struct world *w, int64_t from, int64_t to, struct histogram *plain,
			 struct histogram *missed)
{
	struct sums s = {.min = INT64_MAX, .max = -1};
	long double mean = 0;

	for (int64_t i = from; i < to; i++) {
		if (w->fate[i] == MISSED) {
			s.missed++;
			if (missed)
				histogram_add(missed, w->value[i]);
		}
		if (w->fate[i] != MEASURED)
			continue;
		s.count++;
		s.sum += w->value[i];
		if (w->value[i] < s.min)
			s.min = w->value[i];
		if (w->value[i] > s.max)
			s.max = w->value[i];
		if (plain)
			histogram_add(plain, w->value[i]);
	}
	if (s.count)
		mean = (long double)s.sum / (long double)s.count;
	for (int64_t i = from; i < to; i++) {
		if (w->fate[i] == MEASURED)
			s.m2 += ((long double)w->value[i] - mean) * ((long double)w->value[i] - mean);
	}
	return s;
}

static void check_sums(const char *line, const struct sums *s)
{
	assert_int_equal(field_int(line, "count"), s->count);
	assert_int_equal(field_int(line, "missed"), s->missed);
	assert_int_equal(field_int(line, "sum_ns"), s->sum);
	check_extreme(line, "min_ns", s->min, s->count);
	check_extreme(line, "max_ns", s->max, s->count);
	if (!near(field_real(line, "m2_ns2"), s->m2))
		fail_msg("m2 is %.17g, should be %.17Lg", field_real(line, "m2_ns2"), s->m2);
}

/* The first activation released at or after t. */
static int64_t first_from(const struct world *w, int64_t t)
{
	int64_t n = (t - START + w->interval - 1) / w->interval;

	return n < w->done ? n : w->done;
}

static void check_window(const struct world *w, const char *line)
{
	static struct histogram plain, missed;
	int64_t from = first_from(w, field_int(line, "start_ns")),
		to = first_from(w, field_int(line, "end_ns"));
	struct sums s;

	histogram_clear(&plain);
	histogram_clear(&missed);
	s = naive(w, from, to, &plain, &missed);
	check_sums(line, &s);
	assert_int_equal(check_bins(line, "bins", &plain), s.count);
	assert_int_equal(check_bins(line, "missed_bins", &missed), s.missed);
}

/* Windows follow each other without a gap, in each phase from index 0, and end where they should. */
static int64_t check_windows(const struct world *w, char **lines, size_t count)
{
	int64_t at = START, index = 0, measured_start = START + w->warm_up * w->interval;
	bool measuring = !w->warm_up;
	size_t i;

	for (i = 0; i < count && field_is(lines[i], "type", "\"window\""); i++) {
		int64_t start = field_int(lines[i], "start_ns"), end = field_int(lines[i], "end_ns");

		if (!measuring && at == measured_start) {
			measuring = true;
			index = 0;
		}
		assert_true(field_is(lines[i], "phase", measuring ? "\"measure\"" : "\"warm-up\""));
		assert_int_equal(field_int(lines[i], "series"), 4);
		assert_int_equal(field_int(lines[i], "index"), index++);
		assert_int_equal(start, at);
		assert_true(end > start && end - start <= SECOND);
		if (end - start < SECOND && i + 1 < count && field_is(lines[i + 1], "type", "\"window\""))
			assert_true(!measuring && end == measured_start);
		check_window(w, lines[i]);
		at = end;
	}
	if (!w->stopped)
		assert_int_equal(at, measured_start + w->measured);
	else
		assert_true(at <= START + w->done * w->interval);
	return (int64_t)i;
}

static void check_outliers(const struct world *w, char **lines, int64_t count)
{
	int64_t previous = INT64_MAX, larger = 0, measured = 0;

	for (int64_t i = 0; i < count; i++) {
		int64_t value = field_int(lines[i], "value_ns");
		int64_t position = (field_int(lines[i], "time_ns") - START) / w->interval;

		assert_true(field_is(lines[i], "type", "\"outlier\"") && field_is(lines[i], "cpu", "1"));
		assert_int_equal((field_int(lines[i], "time_ns") - START) % w->interval, 0);
		assert_true(position >= w->warm_up && position < w->done);
		assert_true(w->fate[position] == MEASURED && w->value[position] == value);
		assert_true(value <= previous);
		previous = value;
	}
	for (int64_t i = w->warm_up; i < w->done; i++) {
		measured += w->fate[i] == MEASURED;
		larger += w->fate[i] == MEASURED && w->value[i] > previous;
	}
	assert_int_equal(count, measured < SERIES_OUTLIERS ? measured : SERIES_OUTLIERS);
	assert_true(larger <= count);
}

static void check_summary(const struct world *w, const char *line)
{
	int64_t split = w->warm_up < w->done ? w->warm_up : w->done, lost = 0, impossible = 0;
	struct sums s = naive(w, split, w->done, NULL, NULL), early = naive(w, 0, split, NULL, NULL);
	const char *warm_up = strstr(line, "\"warm_up\":");

	for (int64_t i = 0; i < w->done; i++) {
		lost += w->fate[i] == LOST;
		impossible += w->fate[i] == IMPOSSIBLE;
	}
	assert_true(field_is(line, "type", "\"summary\""));
	check_sums(line, &s);
	assert_int_equal(field_int(line, "lost"), lost);
	assert_int_equal(field_int(line, "impossible"), impossible);
	assert_non_null(warm_up);
	assert_int_equal(field_int(warm_up, "count"), early.count);
	assert_int_equal(field_int(warm_up, "missed"), early.missed);
	check_extreme(warm_up, "max_ns", early.max, early.count);
	assert_int_equal(s.count + s.missed + early.count + early.missed + lost + impossible, w->done);
	assert_true(field_is(line, "cpu_ns", "null"));
}

static void check(struct world *w)
{
	static char *lines[200000];
	size_t count = 0;
	int64_t windows;

	for (char *line = strtok(w->text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_true(count < sizeof(lines) / sizeof(lines[0]));
		assert_true(check_json(line));
		lines[count++] = line;
	}
	assert_true(count >= 1);
	windows = check_windows(w, lines, count);
	check_outliers(w, lines + windows, (int64_t)count - windows - 1);
	check_summary(w, lines[count - 1]);
}

static void activations_add_up_whatever_the_latencies(void **state)
{
	static const int64_t intervals[] = {20 * US,   333 * US, MS,	     7 * MS,	250 * MS,
					    999999999, SECOND,	 1000000001, 3 * SECOND};
	uint64_t random = 11;

	(void)state;
	for (size_t i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++) {
		for (int round = 0; round < 12; round++) {
			struct world w = {.interval = intervals[i]};
			struct spread spread = {.trouble = round % 2};
			int64_t measured = 1 + (int64_t)(next_random(&random) % 3000);

			w.warm_up = round % 3 ? (int64_t)(next_random(&random) % 1000) : 0;
			w.total = w.warm_up + measured;
			/* not always a multiple of the interval */
			w.measured = measured * w.interval -
				     (round % 4 ? 0 : (int64_t)(next_random(&random) % (uint64_t)w.interval));
			spread.rare = 1 + (int64_t)(next_random(&random) % 40);
			spread.gap_ns = w.interval * (int64_t)(1 + next_random(&random) % 400);
			run(&w, next_random(&random), &spread, INT64_MAX);
			assert_int_equal(w.done, w.total);
			assert_false(w.stopped);
			check(&w);
			discard(&w);
		}
	}
}

static void a_stop_cuts_where_activations_end(void **state)
{
	uint64_t random = 5;

	(void)state;
	for (int round = 0; round < 150; round++) {
		struct world w = {.interval = 100 * US +
					      (int64_t)(next_random(&random) % (uint64_t)(2 * SECOND))};
		struct spread spread = {.rare = 10, .gap_ns = 5 * SECOND, .trouble = round % 2};

		w.warm_up = (int64_t)(next_random(&random) % 50);
		w.total = round % 3 ? INT64_MAX : w.warm_up + 200;
		w.measured = w.total == INT64_MAX ? INT64_MAX : 200 * w.interval;
		run(&w, next_random(&random), &spread, (int64_t)(next_random(&random) % 120));
		check(&w);
		discard(&w);
	}
}

static void one_gap_over_many_windows(void **state)
{
	struct world w = {.interval = MS, .total = INT64_MAX, .measured = INT64_MAX, .done = 0};
	struct spread spread = {.rare = 1, .gap_ns = 0};
	struct json j;
	size_t size;

	(void)state;
	w.fate = calloc(20000, sizeof(*w.fate));
	w.value = calloc(20000, sizeof(*w.value));
	w.series = (struct series){.id = 4,
				   .cpu = 1,
				   .interval_ns = MS,
				   .start_ns = START,
				   .total_count = INT64_MAX,
				   .measured_ns = INT64_MAX};
	json_start(&j, open_memstream(&w.text, &size));
	series_begin(&w.series);
	feed(&w, 1, &spread, 500, &j);
	spread.gap_ns = 12345678901;
	for (uint64_t seed = 1; w.done < 5000; seed++) /* one activation a call, until one is long */
		feed(&w, seed, &spread, w.done + 1, &j);
	w.stopped = true;
	series_end(&w.series, true, &j);
	series_summary(&w.series, NULL, &j);
	fclose(j.out);
	check(&w);
	discard(&w);
}

static void an_interval_is_missed_only_when_it_lies_behind(void **state)
{
	(void)state;
	assert_int_equal(series_missed_after(0, 1000), 0);
	assert_int_equal(series_missed_after(999, 1000), 0);
	assert_int_equal(series_missed_after(1000, 1000), 0);
	assert_int_equal(series_missed_after(1001, 1000), 1);
	assert_int_equal(series_missed_after(2000, 1000), 1);
	assert_int_equal(series_missed_after(2001, 1000), 2);
	assert_int_equal(series_missed_after(INT64_MAX, 1), INT64_MAX - 1);
}

static void missed_ones_end_with_the_last_activation(void **state)
{
	struct world w = {.interval = MS, .warm_up = 0, .total = 10, .measured = 10 * MS};
	struct spread spread = {.rare = 1, .gap_ns = INT64_C(3600) * SECOND};

	(void)state;
	run(&w, 99, &spread, INT64_MAX);
	assert_int_equal(w.done, 10);
	check(&w);
	discard(&w);
}

static void what_a_thread_never_came_to_is_missed(void **state)
{
	const int64_t until[] = {START + 20 * MS, START + 20 * MS + 1, INT64_MAX};
	const int64_t total_missed[] = {10, 11, 40};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct world w = {.interval = MS, .warm_up = 5, .total = 50, .measured = 45 * MS};
		struct spread spread = {.rare = INT64_MAX};
		int64_t now = START + 100 * MS;
		struct json j;
		size_t size;

		w.fate = calloc(50, sizeof(*w.fate));
		w.value = calloc(50, sizeof(*w.value));
		w.series = (struct series){.id = 4,
					   .cpu = 1,
					   .interval_ns = MS,
					   .start_ns = START,
					   .warm_up_count = 5,
					   .total_count = 50,
					   .measured_ns = 45 * MS};
		json_start(&j, open_memstream(&w.text, &size));
		series_begin(&w.series);
		feed(&w, 1, &spread, 10, &j);
		series_miss_until(&w.series, until[i], now, &j);
		for (; w.done < 10 + total_missed[i]; w.done++) {
			w.fate[w.done] = MISSED;
			w.value[w.done] = now - (START + w.done * MS);
		}
		w.stopped = w.done < w.total;
		series_end(&w.series, w.stopped, &j);
		series_summary(&w.series, NULL, &j);
		fclose(j.out);
		assert_int_equal(w.series.missed, total_missed[i]);
		check(&w);
		discard(&w);
	}
}

static void a_sample_after_the_last_activation_opens_no_window(void **state)
{
	struct series s = {.interval_ns = MS, .total_count = 3, .measured_ns = 3 * MS};
	struct json j;
	char *text = NULL;
	size_t size;

	(void)state;
	json_start(&j, open_memstream(&text, &size));
	series_begin(&s);
	for (int i = 0; i < 5; i++)
		series_feed(&s, US, &j);
	series_end(&s, false, &j);
	series_summary(&s, NULL, &j);
	fclose(j.out);
	assert_int_equal(s.total.count, 3);
	assert_int_equal(s.impossible, 2);
	assert_null(strstr(strstr(text, "\"window\"") + 1, "\"window\""));
	series_free(&s);
	free(text);
}

static void large_values_keep_their_digits(void **state)
{
	struct world w = {.interval = 20 * US, .warm_up = 0, .total = 150000, .measured = 3 * SECOND};
	struct spread spread = {.rare = 20000, .gap_ns = 2 * SECOND};

	(void)state;
	for (uint64_t seed = 1; seed < 6; seed++) {
		w.done = 0;
		run(&w, seed, &spread, INT64_MAX);
		check(&w);
		discard(&w);
	}
}

static void nothing_fed_is_nothing_said_but_the_summary(void **state)
{
	struct world w = {.interval = MS, .warm_up = 5, .total = 10, .measured = 5 * MS};
	struct spread spread = {.rare = 1, .gap_ns = 1};

	(void)state;
	run(&w, 1, &spread, 0);
	assert_null(strstr(w.text, "\"window\""));
	check(&w);
	discard(&w);
}

/* Reads the file back: values in order; from them releases and missed ones, as docs/formats/stream.md
 * defines. */
static void the_samples_file_tells_the_same(void **state)
{
	char dir[] = "/tmp/rtgauge-test-XXXXXX", path[64];
	struct world w = {.interval = 333 * US, .warm_up = 7, .total = 3000, .measured = 2993 * 333 * US};
	struct spread spread = {.rare = 9, .gap_ns = 40 * MS};
	int64_t header[8], value, position = 0;
	uint32_t words[4];
	FILE *file;

	(void)state;
	w.samples_dir = mkdtemp(dir);
	assert_non_null(w.samples_dir);
	run(&w, 3, &spread, INT64_MAX);
	snprintf(path, sizeof(path), "%s/samples-4.i64", dir);
	assert_null(samples_open(dir, 4)); /* never replaces an existing file */
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fread(header, sizeof(header), 1, file), 1);
	memcpy(words, &header[1], sizeof(words));
	assert_memory_equal(header, "rtgauge\x01", 8);
	assert_true(words[0] == 64 && words[1] == 4 && words[2] == 1 && words[3] == 0);
	assert_int_equal(header[3], w.interval);
	assert_int_equal(header[4], START);
	assert_int_equal(header[5], 7 * w.interval);
	assert_int_equal(header[6], 0);
	assert_int_equal(header[7], w.measured);
	while (fread(&value, sizeof(value), 1, file) == 1) {
		assert_true(position < w.total && w.fate[position] == MEASURED && w.value[position] == value);
		position += 1 + (value > w.interval ? (value - 1) / w.interval : 0);
	}
	assert_true(position >= w.total);
	fclose(file);
	check(&w);
	discard(&w);
	unlink(path);

	spread.trouble = true;
	w.done = 0;
	run(&w, 4, &spread, INT64_MAX);
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fread(header, sizeof(header), 1, file), 1);
	assert_true(header[6] > 0);
	assert_int_equal(header[6], w.series.lost + w.series.impossible);
	fclose(file);
	check(&w);
	discard(&w);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

static void what_the_kernel_counted_is_told(void **state)
{
	struct usage usage = {.voluntary_switches = 1,
			      .involuntary_switches = 2,
			      .minor_faults = 3,
			      .major_faults = 4,
			      .run_delay_ns = -1,
			      .cpu_ns = 6};
	struct series s = {.interval_ns = MS, .cpu = -1};
	struct json j;
	size_t size;
	char *text;

	(void)state;
	json_start(&j, open_memstream(&text, &size));
	series_begin(&s);
	series_summary(&s, &usage, &j);
	fclose(j.out);
	assert_non_null(strstr(
		text,
		"\"thread\":{\"voluntary_switches\":1,\"involuntary_switches\":2,\"minor_faults\":3,\"major_faults\":4,\"run_delay_ns\":null,\"cpu_ns\":6}"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(activations_add_up_whatever_the_latencies),
		cmocka_unit_test(a_stop_cuts_where_activations_end),
		cmocka_unit_test(one_gap_over_many_windows),
		cmocka_unit_test(an_interval_is_missed_only_when_it_lies_behind),
		cmocka_unit_test(missed_ones_end_with_the_last_activation),
		cmocka_unit_test(a_sample_after_the_last_activation_opens_no_window),
		cmocka_unit_test(large_values_keep_their_digits),
		cmocka_unit_test(nothing_fed_is_nothing_said_but_the_summary),
		cmocka_unit_test(what_a_thread_never_came_to_is_missed),
		cmocka_unit_test(the_samples_file_tells_the_same),
		cmocka_unit_test(what_the_kernel_counted_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
