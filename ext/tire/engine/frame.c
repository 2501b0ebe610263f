// SPDX-License-Identifier: MIT
#include "ext/tire/engine/frame.h"

#include <stdio.h>
#include <sys/ioctl.h>

#include "base/commands.h"
#include "base/memory.h"

#define NODES_MOST 1024
#define NODES_LEAST 16
#define NODE_NS 40	    /* approximate time to copy one node (docs/benchmarks.md) */
#define PERIOD_SHARE 100    /* the copies take about a hundredth of the period */
#define SLACK_SHARE 4	    /* a quarter of the period must remain */
#define SAFETY 4	    /* and this many times the duration of a copy */
#define UNITS_A_RADIUS 4096 /* positions are whole numbers of such units */
#define FARTHEST 0x1p50	    /* in units, so that differences fit */

_Atomic enum tire_frame_state tire_frame_state;

static struct {
	const struct tire_plan *plan;
	struct position {
		double x, y;
	} * positions;
	int64_t count, every; /* the frame has every `every`th node */
	int64_t usual_ns;     /* time of a copy, until one was measured */

	/* the last thread owns it until the frame is full */
	int64_t step, time_ns, copy_ns;
	struct tire_frame_counts counts;
	int64_t expected_ns; /* how long the next copy will take */

	_Atomic bool refused; /* a step had no time for a frame */

	/* of the thread that drains */
	int64_t dropped, next_ns;
} frame;

bool tire_frame_make(const struct tire_plan *plan)
{
	int64_t most = NODES_MOST;

	if (plan->period_ns && plan->period_ns / PERIOD_SHARE / NODE_NS < most)
		most = plan->period_ns / PERIOD_SHARE / NODE_NS;
	if (most < NODES_LEAST)
		most = NODES_LEAST;
	frame.plan = plan;
	frame.every = (plan->model->nodes + most - 1) / most;
	frame.count = (plan->model->nodes + frame.every - 1) / frame.every;
	frame.usual_ns = frame.expected_ns = frame.count * NODE_NS;
	frame.positions = memory_get((size_t)frame.count * sizeof(*frame.positions));
	return frame.positions;
}

static bool fits(int64_t left_ns)
{
	return left_ns >= frame.plan->period_ns / SLACK_SHARE && left_ns >= SAFETY * frame.expected_ns;
}

/* One slow copy is forgotten after some more copies, or after some skipped because of it. */
static void expect(int64_t took_ns)
{
	frame.expected_ns -= frame.expected_ns / 8;
	if (frame.expected_ns < took_ns)
		frame.expected_ns = took_ns;
}

bool tire_frame_copy(int64_t step, int64_t time_ns, int64_t now_ns, int64_t until_ns)
{
	int64_t end_ns;

	if (!fits(until_ns - now_ns)) {
		expect(frame.usual_ns);
		atomic_store_explicit(&frame.refused, true, memory_order_relaxed);
		return false;
	}
	for (int64_t i = 0; i < frame.count; i++) {
		struct tire_state s = frame.plan->solver->state(frame.plan->tire, i * frame.every);

		frame.positions[i] = (struct position){s.x, s.y};
	}
	end_ns = clock_now_ns(CLOCK_MONOTONIC);
	frame.step = step;
	frame.time_ns = time_ns;
	frame.copy_ns = end_ns - now_ns;
	frame.counts.copied++;
	frame.counts.late += end_ns > until_ns;
	expect(frame.copy_ns);
	atomic_store_explicit(&tire_frame_state, FRAME_FULL, memory_order_release);
	return true;
}

static int64_t in_units(double length)
{
	double units = length * UNITS_A_RADIUS / frame.plan->model->radius;

	if (!(units > -FARTHEST))
		return -(int64_t)FARTHEST;
	if (units > FARTHEST)
		return (int64_t)FARTHEST;
	return (int64_t)(units < 0 ? units - 0.5 : units + 0.5);
}

static void write_frame(struct json *j)
{
	int64_t x = 0, y = 0;

	json_open(j, NULL, '{');
	json_str(j, "type", "frame");
	json_int(j, "step", frame.step);
	json_int(j, "time_ns", frame.time_ns);
	json_int(j, "every", frame.every);
	json_int(j, "copy_ns", frame.copy_ns);
	json_int(j, "dropped", frame.dropped);
	json_int(j, "late", frame.counts.late);
	json_real(j, "unit_m", frame.plan->model->radius / UNITS_A_RADIUS);
	json_vlq_open(j, "positions");
	for (int64_t i = 0; i < frame.count; i++) {
		int64_t to_x = in_units(frame.positions[i].x), to_y = in_units(frame.positions[i].y);

		json_vlq(j, to_x - x);
		json_vlq(j, to_y - y);
		x = to_x;
		y = to_y;
	}
	json_vlq_close(j);
	json_close(j, '}');
	json_line(j);
}

/* A frame must not fill the pipe, because the pipe also carries the measurements. */
static bool reader_has_all(FILE *out)
{
	int unread = 0;

	return ioctl(fileno(out), FIONREAD, &unread) || !unread;
}

int64_t tire_frame_exchange(struct json *j, int64_t idle_ns)
{
	bool watched = atomic_load_explicit(&commands_watched, memory_order_relaxed);
	enum tire_frame_state state = atomic_load_explicit(&tire_frame_state, memory_order_acquire);
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	if (!watched && state == FRAME_NONE)
		return idle_ns;
	if (now_ns < frame.next_ns)
		return frame.next_ns - now_ns;
	/* on a grid, so that a late wake-up does not reduce the number of frames */
	frame.next_ns = now_ns + TIRE_FRAME_NS - (now_ns - frame.next_ns) % TIRE_FRAME_NS;
	if (state == FRAME_FULL && watched && reader_has_all(j->out))
		write_frame(j);
	else if (watched &&
		 (state == FRAME_FULL ||
		  (atomic_load_explicit(&frame.refused, memory_order_relaxed) && state == FRAME_WANTED)))
		frame.dropped++;
	atomic_store_explicit(&frame.refused, false, memory_order_relaxed);
	/* A wanted frame may come at any moment. */
	if (!watched)
		atomic_store_explicit(&tire_frame_state, FRAME_NONE, memory_order_relaxed);
	else if (state != FRAME_WANTED)
		atomic_store_explicit(&tire_frame_state, FRAME_WANTED, memory_order_release);
	return frame.next_ns - now_ns;
}

const struct tire_frame_counts *tire_frame_counted(void)
{
	return &frame.counts;
}
