// SPDX-License-Identifier: MIT
/*
 * noise: a task that only reads the clock sees each loss of its CPU as a gap between two readings. After
 * each gap, the kernel's counts for the task and the CPU show whether the kernel knows the cause. If it
 * does not, the gap came from below the kernel: hardware, firmware, a hypervisor.
 */
#include <string.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/percent.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/usage.h"
#include "base/verbs.h"
#include "harness/burst.h"
#include "harness/harness.h"
#include "rt/interrupts.h"

#define ROOM ((size_t)3 * 8192)
#define READ_COST_MAX_NS 100000 /* if counting interrupts took longer, it would itself be measured */
#define BUSY_PERCENT_MAX 80

/* If interrupts are not counted, their gaps and the gaps from below the kernel share a series with another
   name. */
enum cause { CAUSE_TASK, CAUSE_INTERRUPT, CAUSE_BELOW, CAUSES };

static const char *const cause_names[] = {"task", "interrupt", "below"};
static const char *const undetermined = "undetermined";

static int64_t threshold_ns = 1000, round_ns = 100000000, busy_ns = 75000000;
static int count_interrupts = 1;

static const struct option_entry table[] = {
	{.shared = harness_option_cpu},
	{.name = "threshold-ns",
	 .kind = OPTION_INT,
	 .value = &threshold_ns,
	 .min = 100,
	 .max = NS_PER_S,
	 .help = "shortest gap that counts"},
	{.name = "round-ns",
	 .kind = OPTION_INT,
	 .value = &round_ns,
	 .min = 1000000,
	 .max = NS_PER_S,
	 .help = "time from the start of one busy stretch to the start of the next"},
	{.name = "busy-ns",
	 .kind = OPTION_INT,
	 .value = &busy_ns,
	 .min = 100000,
	 .max = NS_PER_S,
	 .help = "length of a busy stretch, at most 80 % of --round-ns"},
	{.name = "interrupts",
	 .kind = OPTION_CHOICE,
	 .value = &count_interrupts,
	 .choices = harness_on_off,
	 .help = "count interrupts after each gap if counting takes little time"},
	{.shared = harness_option_count,
	 .help = "number of gaps to measure on each CPU, instead of a duration"},
	{.shared = harness_options_measuring},
	{0},
};

/* A CPU, with its task and a series for each cause. */
struct watched_cpu {
	struct burst_task *task;
	struct series series[CAUSES];
	struct interrupts interrupts;
	bool interrupts_told;
	int64_t read_cost_ns;
	/* in the measured phase: of the burst; of all bursts */
	int64_t observed_ns, observed_all_ns;
	int64_t lost;
};

struct state {
	struct watched_cpu *cpus[PROBE_CPUS_MAX];
	struct burst_task *tasks[PROBE_CPUS_MAX];
	struct series *series[PROBE_CPUS_MAX * CAUSES];
	struct harness_thread *measurers[PROBE_CPUS_MAX * CAUSES];
	unsigned int cpu_count, series_count;
	int64_t measured_from_ns, measured_until_ns; /* set before each burst */
};

/* The kernel's counts up to now. */
struct counted {
	int64_t switches, interrupts;
};

static void count_now(struct watched_cpu *c, struct counted *counted)
{
	struct usage usage;

	usage_read(-1, &usage);
	counted->switches = usage.involuntary_switches + usage.voluntary_switches;
	counted->interrupts = c->interrupts_told ? interrupts_read(&c->interrupts) : 0;
}

static enum cause cause_of(const struct watched_cpu *c, const struct counted *before,
			   const struct counted *after)
{
	if (after->switches != before->switches)
		return CAUSE_TASK;
	if (!c->interrupts_told || after->interrupts != before->interrupts)
		return CAUSE_INTERRUPT;
	return CAUSE_BELOW;
}

/* Returns the part of a stretch that is in the measured phase. */
static int64_t measured_part(const struct state *state, int64_t begin_ns, int64_t end_ns)
{
	if (begin_ns < state->measured_from_ns)
		begin_ns = state->measured_from_ns;
	if (end_ns > state->measured_until_ns)
		end_ns = state->measured_until_ns;
	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/* The measured path: reads the clock until a difference is long. */
static void work(struct burst_task *t)
{
	const struct state *state = t->burst->harness.state;
	struct watched_cpu *c = state->cpus[t->number];
	int64_t limit_ns = t->burst->limit_ns, last_ns, now_ns;
	struct counted before, after;
	size_t count = 0;

	burst_meet(t->burst); /* so that no task keeps the first thread from opening other gates */
	count_now(c, &before);
	c->observed_ns = 0;
	last_ns = clock_now_ns(CLOCK_MONOTONIC);
	for (int64_t begin_ns = last_ns; last_ns < limit_ns; begin_ns = last_ns) {
		do {
			now_ns = last_ns;
			last_ns = clock_now_ns(CLOCK_MONOTONIC);
		} while (last_ns - now_ns < threshold_ns && last_ns < limit_ns);
		c->observed_ns += measured_part(state, begin_ns, now_ns);
		if (last_ns - now_ns < threshold_ns) {
			c->observed_ns += measured_part(state, now_ns, last_ns);
			break;
		}
		/* A whole gap counts in the phase in which it begins. */
		if (now_ns >= state->measured_from_ns && now_ns < state->measured_until_ns)
			c->observed_ns += last_ns - now_ns;
		count_now(c, &after);
		if (count + 3 <= t->room) {
			t->times[count++] = now_ns;
			t->times[count++] = last_ns - now_ns;
			t->times[count++] = cause_of(c, &before, &after);
		} else {
			c->lost++;
		}
		before = after;
		last_ns = clock_now_ns(CLOCK_MONOTONIC);
	}
	t->count = count;
}

static void ready(struct burst *burst)
{
	struct state *state = burst->harness.state;

	state->measured_from_ns = state->series[0]->start_ns + harness_options.warm_up_ns;
	state->measured_until_ns = harness_options.duration_ns
					   ? state->measured_from_ns + harness_options.duration_ns
					   : INT64_MAX;
}

static bool drain(struct burst *burst, struct json *j)
{
	const struct state *state = burst->harness.state;
	bool more = !harness_options.count;

	for (unsigned int i = 0; i < state->cpu_count; i++) {
		struct watched_cpu *c = state->cpus[i];
		const int64_t *gap = c->task->times;
		int64_t gaps = 0;

		for (size_t n = 0; n + 3 <= c->task->count; n += 3)
			series_feed_timed(&c->series[gap[n + 2]], gap[n], gap[n + 1], j);
		c->observed_all_ns += c->observed_ns;
		c->series[CAUSE_TASK].lost = c->lost;
		for (unsigned int cause = 0; cause < CAUSES; cause++)
			gaps += c->series[cause].total.count +
				c->series[cause].measuring * c->series[cause].window.count;
		more |= gaps < harness_options.count;
	}
	return more;
}

static void conclude(struct harness *h, struct json *j)
{
	const struct state *state = h->state;

	for (unsigned int i = 0; i < state->cpu_count; i++) {
		struct watched_cpu *c = state->cpus[i];
		int64_t taken_ns = 0;

		for (unsigned int cause = 0; cause < CAUSES; cause++)
			taken_ns += c->series[cause].total.sum_ns;
		stream_result(j, "noise");
		json_int(j, "cpu", c->task->thread.cpu);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "observed_ns", c->observed_all_ns);
		json_int(j, "taken_ns", taken_ns);
		json_bool(j, "interrupts_counted", c->interrupts_told);
		json_int(j, "counting_costs_ns", c->read_cost_ns);
		stream_result_end(j);
	}
}

/* Returns whether counting interrupts after each gap is cheap enough. Runs on the task's CPU. */
static int prepare(struct harness_thread *thread)
{
	const struct burst_task *t = container_of(thread, struct burst_task, thread);
	const struct state *state = t->burst->harness.state;
	struct watched_cpu *c = state->cpus[t->number];

	c->series[CAUSE_INTERRUPT].labels[0].text = undetermined;
	if (!count_interrupts || interrupts_open(&c->interrupts, thread->cpu))
		return 0;
	for (int i = 0; i < 5; i++) {
		int64_t began_ns = clock_now_ns(CLOCK_MONOTONIC), took_ns;

		interrupts_read(&c->interrupts);
		took_ns = clock_now_ns(CLOCK_MONOTONIC) - began_ns;
		if (i == 0 || took_ns < c->read_cost_ns)
			c->read_cost_ns = took_ns;
	}
	c->interrupts_told = c->read_cost_ns <= READ_COST_MAX_NS;
	if (c->interrupts_told)
		c->series[CAUSE_INTERRUPT].labels[0].text = cause_names[CAUSE_INTERRUPT];
	return 0;
}

static int check_numbers(struct harness *h)
{
	(void)h;
	if (percent_is_above(busy_ns, round_ns, BUSY_PERCENT_MAX))
		return usage_error(
			"a busy time of %lld ns in each %lld ns leaves the machine too little time for "
			"other programs; give at most %d %%",
			(long long)busy_ns, (long long)round_ns, BUSY_PERCENT_MAX);
	return 0;
}

static int prepare_probe(struct burst *burst)
{
	const struct cpuset *measured = &burst->harness.cpus->measured;
	struct state *state = burst->harness.state;

	for (int cpu = cpuset_next(measured, 0); cpu >= 0;
	     cpu = cpuset_next(measured, (unsigned int)cpu + 1)) {
		struct watched_cpu *c = memory_get(sizeof(*c));

		if (!c)
			return harness_no_memory();
		c->task = burst_task_new(cpu, ROOM, work);
		if (!c->task)
			return harness_no_memory();
		c->task->thread.prepare = prepare;
		for (unsigned int cause = 0; cause < CAUSES; cause++) {
			struct series *s = &c->series[cause];

			s->id = state->series_count;
			s->metric = "gap";
			s->cpu = cpu;
			s->labels[0] = (struct label){"cause", cause_names[cause]};
			state->measurers[state->series_count] = cause == CAUSE_TASK ? &c->task->thread : NULL;
			state->series[state->series_count++] = s;
		}
		state->cpus[state->cpu_count] = c;
		state->tasks[state->cpu_count++] = c->task;
	}
	burst->tasks = state->tasks;
	burst->task_count = state->cpu_count;
	burst->harness.series = state->series;
	burst->harness.measurers = state->measurers;
	burst->harness.series_count = state->series_count;
	burst->work_ns = busy_ns;
	burst->pause_ns = round_ns - busy_ns;
	return 0;
}

static struct burst burst = {
	.harness =
		{
			.table = table,
			.check = check_numbers,
			.state_size = sizeof(struct state),
			.conclude = conclude,
		},
	.prepare = prepare_probe,
	.ready = ready,
	.drain = drain,
};

static int verb_noise(int argc, char **argv)
{
	return burst_run(&burst, argc, argv);
}

PROBE("noise", verb_noise,
      "gaps in a task that only reads the clock, with the cause that the kernel's counters show")
