// SPDX-License-Identifier: MIT
/* calibrate: measures each clock's resolution and the cost of reading it (Garre et al. 2014, sec. 3.4). */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/stream.h"
#include "base/verbs.h"
#include "harness/clock_cost.h"

static const struct {
	const char *name;
	clockid_t clock;
} clocks[] = {
	{"CLOCK_MONOTONIC", CLOCK_MONOTONIC},
	{"CLOCK_MONOTONIC_RAW", CLOCK_MONOTONIC_RAW},
	{"CLOCK_REALTIME", CLOCK_REALTIME},
	{"CLOCK_TAI", CLOCK_TAI},
	{"CLOCK_BOOTTIME", CLOCK_BOOTTIME},
	{"CLOCK_MONOTONIC_COARSE", CLOCK_MONOTONIC_COARSE},
	{"CLOCK_PROCESS_CPUTIME_ID", CLOCK_PROCESS_CPUTIME_ID},
	{"CLOCK_THREAD_CPUTIME_ID", CLOCK_THREAD_CPUTIME_ID},
};

static struct clock_cost cost;

static void write_calibration(struct json *j, const char *name, int error)
{
	json_open(j, NULL, '{');
	json_str(j, "type", "calibration");
	json_str(j, "clock", name);
	if (error || !cost.count) {
		static const char *const figures[] = {"resolution_ns", "min_ns", "p50_ns",	    "p99_ns",
						      "mean_ns",       "max_ns", "smallest_step_ns"};

		json_int(j, "count", 0);
		for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
			json_null(j, figures[i]);
	} else {
		json_int(j, "count", cost.count);
		json_int(j, "resolution_ns", cost.resolution_ns);
		json_int(j, "min_ns", cost.min_ns);
		json_int(j, "p50_ns", clock_cost_quantile(&cost, 0.5));
		json_int(j, "p99_ns", clock_cost_quantile(&cost, 0.99));
		json_real(j, "mean_ns", (double)cost.sum_ns / (double)cost.count);
		json_int(j, "max_ns", cost.max_ns);
		if (cost.smallest_step_ns)
			json_int(j, "smallest_step_ns", cost.smallest_step_ns);
		else
			json_null(j, "smallest_step_ns");
	}
	json_open(j, "bins", '[');
	for (uint32_t bin = 0; !error && bin < HISTOGRAM_BINS; bin++) {
		if (!cost.bins[bin])
			continue;
		json_open(j, NULL, '[');
		json_uint(j, NULL, bin);
		json_uint(j, NULL, cost.bins[bin]);
		json_close(j, ']');
	}
	json_close(j, ']');
	json_str(j, "error", error ? strerror(error) : NULL);
	json_close(j, '}');
	json_line(j);
}

static int verb_calibrate(int argc, char **argv)
{
	int64_t count = 100000, limit_ns = NS_PER_S / 5;
	const struct option_entry table[] = {
		{.name = "count",
		 .kind = OPTION_INT,
		 .value = &count,
		 .min = 1,
		 .max = 100000000,
		 .help = "readings of each clock"},
		{.name = "limit-ns",
		 .kind = OPTION_INT,
		 .value = &limit_ns,
		 .min = 1000,
		 .max = 10 * NS_PER_S,
		 .help = "how long to read each clock at most"},
		{0},
	};
	struct json j;
	int status = options_parse(table, argc, argv);

	if (status)
		return status < 0 ? STATUS_OK : status;
	stream_begin(&j);
	stream_hello(&j, argv[0], table);
	json_close(&j, '}');
	json_line(&j);
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		int error = clock_cost_measure(clocks[i].clock, count, limit_ns, &cost);

		write_calibration(&j, clocks[i].name, error);
		if (!error && cost.backwards)
			stream_mark(&j, "clock-backwards", SEVERITY_INVALID, -1,
				    "%s went backwards %lld times", clocks[i].name,
				    (long long)cost.backwards);
	}
	stream_end(&j, "count", 0);
	return stream_written() ? STATUS_OK : STATUS_CANNOT_MEASURE;
}

PROBE("calibrate", verb_calibrate, "resolution of each clock, and how long reading it takes")
