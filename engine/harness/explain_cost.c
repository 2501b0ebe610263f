// SPDX-License-Identifier: MIT
#include "harness/explain_cost.h"

#include "base/clock.h"
#include "base/histogram.h"

#define STRETCHES 16
#define MARGIN_NS (NS_PER_S / 5) /* time for enabling events permanently, and for late samples */
#define SETTLE_NS                                                                                            \
	(NS_PER_S / 200) /* time after a switch in which the kernel's code is changed on all CPUs            \
			  */

static struct {
	int64_t begin_ns, length_ns;
	void (*switch_events)(bool on);
	unsigned int begun; /* stretches */
	bool over;
	int64_t on_since_ns; /* the events stay on since then */
	struct {
		int64_t start_ns, end_ns, count; /* range of the samples that count; end 0: not over */
		struct histogram histogram;
	} stretches[STRETCHES];
} cost;

/* The order without, with, with, without makes drift affect both alike. */
static bool has_events(unsigned int stretch)
{
	return stretch % 4 == 1 || stretch % 4 == 2;
}

int64_t explain_cost_ns(int64_t stretches_ns)
{
	return stretches_ns ? stretches_ns + MARGIN_NS : 0;
}

void explain_cost_begin(int64_t begin_ns, int64_t stretches_ns, void (*switch_events)(bool on))
{
	cost.begin_ns = begin_ns;
	cost.length_ns = stretches_ns / STRETCHES;
	cost.switch_events = switch_events;
	cost.over = !cost.length_ns;
}

void explain_cost_turn(void)
{
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
	int64_t turn =
		now_ns < cost.begin_ns ? 0 : (now_ns - cost.begin_ns) / (cost.length_ns + !cost.length_ns);

	if (cost.over || now_ns < cost.begin_ns || turn < cost.begun)
		return;
	if (cost.begun)
		cost.stretches[cost.begun - 1].end_ns = now_ns;
	cost.over = turn >= STRETCHES || cost.begun == STRETCHES;
	if (cost.over) {
		if (cost.begun && !has_events(cost.begun - 1))
			cost.switch_events(true);
		cost.on_since_ns = clock_now_ns(CLOCK_MONOTONIC) + SETTLE_NS;
		return;
	}
	if (cost.begun ? has_events(cost.begun) != has_events(cost.begun - 1) : !has_events(0))
		cost.switch_events(has_events(cost.begun));
	histogram_clear(&cost.stretches[cost.begun].histogram);
	cost.stretches[cost.begun++].start_ns = clock_now_ns(CLOCK_MONOTONIC) + SETTLE_NS;
}

bool explain_cost_had_events(int64_t time_ns)
{
	return !cost.length_ns || (cost.over && time_ns >= cost.on_since_ns);
}

void explain_cost_sample(int64_t release_ns, int64_t value_ns)
{
	for (unsigned int i = 0; i < cost.begun && value_ns >= 0; i++) {
		int64_t end_ns = cost.stretches[i].end_ns;

		if (release_ns >= cost.stretches[i].start_ns && (!end_ns || release_ns + value_ns < end_ns))
			cost.stretches[i].count += histogram_add(&cost.stretches[i].histogram, value_ns);
	}
}

void explain_cost_write(struct json *j)
{
	for (unsigned int i = 0; i < cost.begun; i++) {
		if (!cost.stretches[i].end_ns)
			continue;
		json_open(j, NULL, '{');
		json_str(j, "type", "stretch");
		json_bool(j, "events", has_events(i));
		json_int(j, "start_ns", cost.stretches[i].start_ns);
		json_int(j, "end_ns", cost.stretches[i].end_ns);
		json_int(j, "count", cost.stretches[i].count);
		histogram_json(NULL, &cost.stretches[i].histogram, "bins", j);
		json_close(j, '}');
		json_line(j);
	}
}
