// SPDX-License-Identifier: MIT
#include "probes/watch/cost.h"

#include "base/stream.h"

#define LENGTH_NS (NS_PER_S / 10)

static bool has_events(int stretch)
{
	return stretch % 4 == 1 || stretch % 4 == 2;
}

/* Adds or subtracts what the threads have run up to now. */
static void add_run(struct watch_cost *cost, int stretch, int sign)
{
	int64_t cpu_ns, slices;
	bool known = true;

	for (int i = 0; i < cost->count; i++) {
		known &= thread_run(cost->tids[i], &cpu_ns, &slices);
		cost->stretches[stretch].cpu_ns += sign * cpu_ns;
		cost->stretches[stretch].slices += sign * slices;
	}
	cost->stretches[stretch].known = known;
}

void watch_cost_begin(struct watch_cost *cost, struct sched_events *events, int64_t begin_ns,
		      const pid_t *tids, int count)
{
	cost->events = events;
	cost->begin_ns = begin_ns;
	for (int i = 0; i < count; i++)
		cost->tids[i] = tids[i];
	cost->count = count;
}

bool watch_cost_turn(struct watch_cost *cost, int64_t now_ns)
{
	int64_t turn = (now_ns - cost->begin_ns) / LENGTH_NS;

	if (cost->over || turn < cost->begun)
		return false;
	if (cost->begun)
		add_run(cost, cost->begun - 1, 1);
	cost->over = turn >= WATCH_COST_STRETCHES || cost->begun == WATCH_COST_STRETCHES;
	if (cost->begun) /* half of it was recorded */
		sched_events_fit_buffers(cost->events, (now_ns - cost->begin_ns) / 2);
	else /* the rings have what came before the start, perhaps only the last of it */
		sched_events_fit_buffers(cost->events, now_ns - cost->events->first_ns);
	if (!cost->begun)
		sched_events_count_bytes(cost->events);
	if (cost->over) {
		sched_events_switch(cost->events, true);
		return true;
	}
	sched_events_switch(cost->events, has_events(cost->begun));
	add_run(cost, cost->begun++, -1);
	return true;
}

void watch_cost_write(const struct watch_cost *cost, struct json *j)
{
	for (int i = 0; i < cost->begun; i++) {
		if (!cost->over || !cost->stretches[i].known || cost->stretches[i].slices <= 0)
			continue;
		stream_result(j, "watch-cost");
		json_close(j, '}');
		json_open(j, "values", '{');
		json_bool(j, "events", has_events(i));
		json_int(j, "cpu_ns", cost->stretches[i].cpu_ns);
		json_int(j, "slices", cost->stretches[i].slices);
		stream_result_end(j);
	}
}
