// SPDX-License-Identifier: MIT
/*
 * taskset: runs a set of periodic tasks, each of which burns its execution time (Delgado & Choi 2020,
 * algorithm 2). Late activations run late, and none is skipped.
 */
#include <stdatomic.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/verbs.h"
#include "ext/schedulability/engine/task.h"
#include "harness/harness.h"

#define LEAD_NS (NS_PER_S / 20) /* from `go` to time 0; by then, every thread waits */
#define DRAIN_NS (NS_PER_S / 5)
#define MILLION 1000000
#define MAX_MILLIONTHS 950000 /* the share that Linux itself allows real-time tasks by default */
#define HOG_PERCENT 97
#define FORCED_NS (10 * NS_PER_S)
#define AFTER_NS NS_PER_S /* time after the last deadline, for late activations */
#define MARGIN_NS 50000	  /* budget of a deadline task above its execution time, plus 5 % of it */

static const struct {
	const char *metric, *unit;
} metrics[METRICS_OF_ALL] = {
	{"latency", "ns"},   {"response", "ns"},	{"response-from-start", "ns"},
	{"period", "ns"},    {"absolute-jitter", "ns"}, {"tardiness", "ns"},
	{"execution", "ns"}, {"preemptions", "count"},
};

static const char *const execution_names[] = {"wall", "cpu", NULL};

static struct {
	const char *tasks;
	int execution, pin;
	int64_t timeline_ns;
	bool force;
} options = {.pin = 1};

static const struct option_entry table[] = {
	{.name = "tasks",
	 .kind = OPTION_TEXT,
	 .value = &options.tasks,
	 .help = "the tasks, one on each line: cpu priority period execution deadline offset name; times in ns"},
	{.shared = harness_option_policy, .choices = policy_all_names},
	{.name = "execution",
	 .kind = OPTION_CHOICE,
	 .value = &options.execution,
	 .choices = execution_names,
	 .help = "clock by which the busy loop of a task counts its execution time"},
	{.name = "pin",
	 .kind = OPTION_CHOICE,
	 .value = &options.pin,
	 .choices = harness_on_off,
	 .help = "whether each task is pinned to its CPU; off is allowed only for deadline tasks without an exclusive cpuset"},
	{.name = "timeline-ns",
	 .kind = OPTION_INT,
	 .value = &options.timeline_ns,
	 .min = 0,
	 .max = 3600 * NS_PER_S,
	 .help = "length of the timeline, from time 0"},
	{.name = "force",
	 .kind = OPTION_FLAG,
	 .value = &options.force,
	 .help = "run the set even if it overloads its CPU"},
	{.shared = harness_option_duration},
	{.shared = harness_option_warm_up},
	{.shared = harness_options_machine},
	{.shared = explain_options_table},
	{0},
};

struct state {
	struct task_entry entries[TASK_LIST_MAX];
	struct task *tasks[TASK_LIST_MAX];
	int task_count;
	struct harness_thread *threads[TASK_LIST_MAX];
	struct harness_thread *measurers[TASK_LIST_MAX * METRICS];
	struct series *series[TASK_LIST_MAX * METRICS];
	bool overloaded;
	_Atomic int at_work; /* tasks that still run measured activations */
};

static int check_overload(struct state *state)
{
	const struct task_entry *entries = state->entries;

	for (int i = 0; i < state->task_count; i++) {
		int64_t millionths = task_list_utilisation(entries, state->task_count, entries[i].cpu);

		if (millionths <= MAX_MILLIONTHS)
			continue;
		if (!options.force)
			return error_line(
				STATUS_USAGE, "overload",
				"the tasks need %lld.%lld %% of CPU %d, above 95 %%, so the rest of the machine would starve; use --force to run them for at most 10 s",
				(long long)(millionths / 10000), (long long)(millionths / 1000 % 10),
				entries[i].cpu);
		state->overloaded = true;
	}
	if (state->overloaded && (!harness_options.duration_ns ||
				  harness_options.duration_ns + harness_options.warm_up_ns > FORCED_NS))
		return error_line(
			STATUS_USAGE, "overload",
			"a set that overloads its CPU runs for at most 10 s, warm-up included; give a shorter --duration");
	return 0;
}

static int check_deadlines(const struct state *state)
{
	const struct task_entry *entries = state->entries;

	for (int i = 0; i < state->task_count; i++) {
		if (harness_options.policy == POLICY_DEADLINE &&
		    entries[i].deadline_ns > entries[i].period_ns)
			return error_line(
				STATUS_USAGE, "task-set",
				"task %d: SCHED_DEADLINE does not accept a deadline longer than the period",
				i + 1);
	}
	if (!options.pin && harness_options.policy != POLICY_DEADLINE)
		return usage_error(
			"--pin off works only with --policy deadline, because tasks of other policies are pinned");
	return 0;
}

static int check(struct harness *h)
{
	struct state *state = h->state;
	struct task_entry *entries = state->entries;
	int status;

	state->task_count = task_list_parse(options.tasks ? options.tasks : "", entries);
	if (state->task_count < 0)
		return STATUS_USAGE;
	status = check_deadlines(state);
	if (!status)
		status = check_overload(state);
	harness_options.priority = 1;
	for (int i = 0; i < state->task_count; i++) {
		cpuset_add(&harness_options.cpus, (unsigned int)entries[i].cpu);
		if (entries[i].priority > harness_options.priority)
			harness_options.priority = entries[i].priority;
	}
	return status;
}

static struct task *make_task(struct state *state, int n)
{
	const struct task_entry *entry = &state->entries[n];
	struct task *t = memory_get(sizeof(*t));
	int64_t runtime_ns = entry->execution_ns + entry->execution_ns / 20 + MARGIN_NS;

	if (!t || !task_make(t, entry))
		return NULL;
	t->execution = (enum busy_loop_by)options.execution;
	t->timeline_ns = options.timeline_ns;
	t->others = &state->at_work;
	t->last_number = -2;
	t->thread.cpu = entry->cpu;
	t->thread.free = !options.pin;
	t->thread.policy = (enum policy)harness_options.policy;
	t->thread.priority = entry->priority;
	t->thread.deadline =
		(struct deadline){runtime_ns < entry->deadline_ns ? runtime_ns : entry->deadline_ns,
				  entry->deadline_ns, entry->period_ns};
	for (int m = 0; m < METRICS; m++) {
		struct series *s = &t->series[m];

		s->id = (unsigned int)(n * METRICS + m);
		s->cpu = entry->cpu;
		s->metric = metrics[m].metric;
		s->unit = metrics[m].unit;
		s->labels[0] = (struct label){"task", entry->name};
		state->series[s->id] = s;
		if (RUNTIME_FIRES_EARLY && (m == LATENCY || m == RESPONSE) && !series_take_early(s))
			return NULL;
	}
	state->measurers[t->series[LATENCY].id] = &t->thread;
	state->threads[n] = &t->thread;
	return t;
}

static int prepare_probe(struct harness *h)
{
	struct state *state = h->state;

	atomic_store(&state->at_work, state->task_count);
	for (int n = 0; n < state->task_count; n++) {
		state->tasks[n] = make_task(state, n);
		if (!state->tasks[n])
			return harness_no_memory();
	}
	h->threads = state->threads;
	h->series = state->series;
	h->measurers = state->measurers;
	h->hog_percent = state->overloaded ? MILLION : HOG_PERCENT;
	h->thread_count = (unsigned int)state->task_count;
	h->series_count = (unsigned int)state->task_count * METRICS;
	return 0;
}

static void set_times(const struct state *state, int64_t base_ns)
{
	int64_t measured_ns = harness_options.duration_ns ? harness_options.duration_ns : INT64_MAX;
	int64_t length_ns = harness_options.warm_up_ns + harness_options.duration_ns, last_ns = 0;

	for (int n = 0; n < state->task_count; n++) {
		if (state->entries[n].deadline_ns > last_ns)
			last_ns = state->entries[n].deadline_ns;
	}
	for (int n = 0; n < state->task_count; n++) {
		struct task *t = state->tasks[n];
		int64_t left_ns = length_ns - t->entry->offset_ns;

		t->start_ns = base_ns + t->entry->offset_ns;
		t->total = INT64_MAX;
		t->limit_ns = INT64_MAX;
		if (harness_options.duration_ns) {
			t->total = left_ns <= 0 ? 0 : (left_ns - 1) / t->entry->period_ns + 1;
			t->limit_ns = base_ns + length_ns + last_ns + AFTER_NS;
		}
		for (int m = 0; m < METRICS; m++)
			series_timed(&t->series[m], base_ns, harness_options.warm_up_ns, measured_ns);
	}
}

static void feed(struct task *t, const struct sample *sample, struct json *j)
{
	int64_t release_ns = t->start_ns + sample->number * t->entry->period_ns;
	int64_t response_ns = sample->finish_ns - release_ns;
	int64_t values[METRICS_OF_ALL] = {
		[LATENCY] = sample->start_ns - release_ns,
		[RESPONSE] = response_ns,
		[FROM_START] = sample->finish_ns - sample->start_ns,
		[TARDINESS] = response_ns > t->entry->deadline_ns ? response_ns - t->entry->deadline_ns : 0,
		[EXECUTION] = sample->execution_ns,
		[PREEMPTIONS] = sample->preemptions,
	};

	for (int m = 0; m < METRICS; m++) {
		if (m != PERIOD && m != JITTER)
			series_feed_timed(&t->series[m], release_ns, values[m], j);
	}
	if (sample->number == t->last_number + 1) {
		int64_t period_ns = sample->start_ns - t->last_start_ns;
		int64_t off_ns = period_ns - t->entry->period_ns;

		series_feed_timed(&t->series[PERIOD], release_ns, period_ns, j);
		series_feed_timed(&t->series[JITTER], release_ns, off_ns < 0 ? -off_ns : off_ns, j);
	}
	t->last_number = sample->number;
	t->last_start_ns = sample->start_ns;
}

static void write_trace(struct task *t, struct json *j)
{
	t->trace_written = true;
	for (unsigned int i = 0; i < t->trace.count; i++) {
		json_open(j, NULL, '{');
		json_str(j, "type", "segment");
		json_uint(j, "series", t->series[LATENCY].id);
		json_int(j, "activation", t->trace.segments[i].activation + 1);
		json_int(j, "start_ns", t->trace.segments[i].start_ns);
		json_int(j, "end_ns", t->trace.segments[i].end_ns);
		json_close(j, '}');
		json_line(j);
	}
	if (t->trace.dropped)
		stream_mark(j, "timeline-cut", SEVERITY_NOTE, (int)t->series[LATENCY].id,
			    "this task's timeline leaves out %u segments that did not fit into the buffer",
			    t->trace.dropped);
}

/* Takes everything from the rings. Returns false if every thread has ended and every ring is empty. */
static bool drain(struct harness *h, struct json *j)
{
	const struct state *state = h->state;
	bool alive = false;

	for (int n = 0; n < state->task_count; n++) {
		struct task *t = state->tasks[n];
		bool done = atomic_load(&t->thread.done);
		size_t slot;

		while (slot_ring_pop(&t->ring, &slot))
			feed(t, &t->slots[slot], j);
		if (options.timeline_ns && !t->trace_written &&
		    atomic_load_explicit(&t->traced, memory_order_acquire))
			write_trace(t, j);
		alive |= !done;
	}
	return alive;
}

static void tell_unfinished(const struct state *state, struct json *j)
{
	for (int n = 0; n < state->task_count; n++) {
		struct task *t = state->tasks[n];

		for (int m = 0; m < METRICS; m++)
			t->series[m].lost = t->lost;
		if (t->unfinished > 0)
			stream_mark(
				j, "unfinished", SEVERITY_DOUBTFUL, (int)t->series[LATENCY].id,
				"%lld activations of task %s were released but not finished by the end: they were late or had not begun, and the figures leave them out",
				(long long)t->unfinished, t->entry->name);
	}
}

static void hello(const struct harness *h, struct json *j)
{
	const struct state *state = h->state;

	json_open(j, "busy_loop", '[');
	for (int n = 0; n < state->task_count; n++) {
		const struct task *t = state->tasks[n];

		json_open(j, NULL, '{');
		json_str(j, "task", t->entry->name);
		json_int(j, "cpu", t->entry->cpu);
		json_int(j, "pass_ns", t->cost.pass_ns);
		json_int(j, "thread_clock_ns", t->cost.thread_clock_ns);
		json_int(j, "counting_ns", t->counting_ns);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static int run(struct harness *h)
{
	int64_t length_ns = INT64_MAX;

	set_times(h->state, clock_now_ns(CLOCK_MONOTONIC) + LEAD_NS);
	harness_go(h);
	if (harness_options.duration_ns)
		length_ns = harness_options.warm_up_ns + harness_options.duration_ns;
	harness_watch(h, length_ns);
	harness_drain(h, drain, DRAIN_NS);
	tell_unfinished(h->state, &h->j);
	return harness_finish(h, "duration");
}

static bool explained(const struct harness *h, const struct series *s, struct explained *who)
{
	const struct state *state = h->state;
	const struct task *t = state->tasks[s->id / METRICS];

	if (s->id % METRICS != LATENCY && s->id % METRICS != RESPONSE)
		return false;
	*who = (struct explained){.cpu = t->entry->cpu, .tid = t->thread.tid};
	return true;
}

static int verb_taskset(int argc, char **argv)
{
	static struct harness harness = {
		.table = table,
		.state_size = sizeof(struct state),
		.check = check,
		.prepare = prepare_probe,
		.run = run,
		.hello = hello,
		.explained = explained,
	};

	return harness_run(&harness, argc, argv);
}

PROBE("taskset", verb_taskset, "period, response, jitter and deadline misses of a set of periodic tasks")
