// SPDX-License-Identifier: MIT
#include "ext/schedulability/engine/busy_loop.h"

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "base/clock.h"
#include "base/usage.h"
#include "harness/harness.h"
#include "rt/runtime.h"

#define LOOP_NS (NS_PER_S / 1000)
#define CALIBRATE_NS (NS_PER_S / 500)
#define READINGS 200

static void note(struct busy_loop_trace *trace, int64_t activation, int64_t start_ns, int64_t end_ns)
{
	if (trace->count < trace->size)
		trace->segments[trace->count++] = (struct busy_loop_segment){activation, start_ns, end_ns};
	else
		trace->dropped++;
}

/* The state in which an activation's loop continues. */
struct run {
	struct busy_loop_trace *trace;
	int64_t activation, begun_ns, last_ns; /* start of the segment; the last reading */
	int64_t gaps_ns;		       /* kept if the runtime has no CPU time for each thread */
};

static int64_t cpu_now_ns(const struct run *run)
{
	return RUNTIME_COUNTS_SWITCHES ? usage_own_cpu_ns() : run->last_ns - run->gaps_ns;
}

static inline __attribute__((always_inline)) int64_t spin_until(struct run *run, int64_t end_ns,
								uint64_t *passes)
{
	int64_t now_ns;

	do {
		now_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (__builtin_expect(now_ns - run->last_ns > BUSY_LOOP_GAP_NS, 0)) {
			if (!RUNTIME_COUNTS_SWITCHES)
				run->gaps_ns += now_ns - run->last_ns;
			if (run->trace) {
				note(run->trace, run->activation, run->begun_ns, run->last_ns);
				run->begun_ns = now_ns;
			}
		}
		run->last_ns = now_ns;
		if (passes)
			++*passes;
	} while (now_ns < end_ns);
	return now_ns;
}

static bool over(const struct run *run, int64_t limit_ns)
{
	return run->last_ns >= limit_ns || atomic_load_explicit(&harness_shared.stop, memory_order_relaxed);
}

static bool busy_loop_wall(struct run *run, int64_t time_ns, int64_t limit_ns)
{
	for (int64_t done_ns = 0; done_ns < time_ns; done_ns += LOOP_NS) {
		int64_t loop_ns = time_ns - done_ns < LOOP_NS ? time_ns - done_ns : LOOP_NS;

		spin_until(run, clock_now_ns(CLOCK_MONOTONIC) + loop_ns, NULL);
		if (over(run, limit_ns))
			return done_ns + loop_ns >= time_ns;
	}
	return true;
}

static bool busy_loop_cpu(struct run *run, int64_t time_ns, int64_t limit_ns,
			  const struct busy_loop_cost *cost)
{
	int64_t end_ns = cpu_now_ns(run) + time_ns;

	for (;;) {
		int64_t left_ns = end_ns - cpu_now_ns(run);
		int64_t loop_ns = left_ns < LOOP_NS ? left_ns : LOOP_NS;

		/* The rest of this reading and one pass are still to come. */
		if (left_ns <= (cost->thread_clock_ns + cost->pass_ns) / 2)
			return true;
		if (over(run, limit_ns))
			return false;
		/* A gap in this stretch leaves CPU time for another stretch. A stretch never burns too
		   much. */
		spin_until(run, clock_now_ns(CLOCK_MONOTONIC) + loop_ns, NULL);
	}
}

int64_t busy_loop(enum busy_loop_by by, int64_t time_ns, int64_t start_ns, int64_t limit_ns,
		  const struct busy_loop_cost *cost, struct busy_loop_trace *trace, int64_t activation,
		  int64_t *ran_ns)
{
	struct run run = {trace, activation, start_ns, start_ns, 0};
	bool whole = by == BUSY_LOOP_WALL ? busy_loop_wall(&run, time_ns, limit_ns)
					  : busy_loop_cpu(&run, time_ns, limit_ns, cost);
	int64_t end_ns = clock_now_ns(CLOCK_MONOTONIC);

	if (!RUNTIME_COUNTS_SWITCHES)
		*ran_ns = cpu_now_ns(&run) - start_ns;
	if (trace)
		note(trace, activation, run.begun_ns, end_ns);
	return whole ? end_ns : -1;
}

void busy_loop_calibrate(struct busy_loop_cost *cost)
{
	struct run run = {.last_ns = clock_now_ns(CLOCK_MONOTONIC)};
	int64_t start_ns = run.last_ns;
	uint64_t passes = 0;
	int64_t end_ns = spin_until(&run, start_ns + CALIBRATE_NS, &passes);

	cost->pass_ns = (end_ns - start_ns) / (int64_t)passes;
	cost->thread_clock_ns = INT64_MAX;
	for (int i = 0; i < READINGS; i++) {
		int64_t before_ns = clock_now_ns(CLOCK_MONOTONIC), took_ns;

		usage_own_cpu_ns();
		took_ns = clock_now_ns(CLOCK_MONOTONIC) - before_ns;
		if (took_ns < cost->thread_clock_ns)
			cost->thread_clock_ns = took_ns;
	}
}
