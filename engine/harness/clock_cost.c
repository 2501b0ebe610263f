// SPDX-License-Identifier: MIT
#include "harness/clock_cost.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"

int clock_cost_measure(clockid_t clock, int64_t count, int64_t limit_ns, struct clock_cost *cost)
{
	struct timespec resolution, reading;
	int64_t before, now, began;

	cost->resolution_ns = 0;
	cost->count = cost->sum_ns = cost->backwards = cost->max_ns = cost->smallest_step_ns = 0;
	cost->min_ns = INT64_MAX;
	memset(cost->bins, 0, sizeof(cost->bins));
	if (clock_getres(clock, &resolution) || clock_gettime(clock, &reading))
		return errno;
	cost->resolution_ns = timespec_ns(&resolution);
	began = before = timespec_ns(&reading);
	for (int64_t i = 0; i < count && before - began < limit_ns; i++, before = now) {
		int64_t difference;

		clock_gettime(clock, &reading);
		now = timespec_ns(&reading);
		difference = now - before;
		if (difference < 0) {
			cost->backwards++;
			continue;
		}
		cost->count++;
		cost->sum_ns += difference;
		if (difference < cost->min_ns)
			cost->min_ns = difference;
		if (difference > cost->max_ns)
			cost->max_ns = difference;
		if (difference && (!cost->smallest_step_ns || difference < cost->smallest_step_ns))
			cost->smallest_step_ns = difference;
		cost->bins[histogram_bin(difference)]++;
	}
	return 0;
}

int64_t clock_cost_quantile(const struct clock_cost *cost, double share)
{
	int64_t rank = (int64_t)ceil(share * (double)cost->count), seen = 0;

	for (uint32_t bin = 0; bin < HISTOGRAM_BINS; bin++) {
		int64_t upper;

		seen += cost->bins[bin];
		if (seen < rank)
			continue;
		upper = histogram_upper(bin);
		return upper < cost->max_ns ? upper : cost->max_ns;
	}
	return cost->max_ns;
}

void clock_cost_json(struct json *j)
{
	static struct clock_cost cost;
	int error = clock_cost_measure(CLOCK_MONOTONIC, 10000, NS_PER_S / 10, &cost);

	json_open(j, "clock", '{');
	json_str(j, "name", "CLOCK_MONOTONIC");
	json_int(j, "resolution_ns", cost.resolution_ns);
	json_int(j, "cost_count", cost.count);
	if (!error && cost.count) {
		json_int(j, "cost_min_ns", cost.min_ns);
		json_int(j, "cost_p50_ns", clock_cost_quantile(&cost, 0.5));
		json_int(j, "cost_p99_ns", clock_cost_quantile(&cost, 0.99));
		json_real(j, "cost_mean_ns", (double)cost.sum_ns / (double)cost.count);
		json_int(j, "cost_max_ns", cost.max_ns);
	}
	json_close(j, '}');
}
