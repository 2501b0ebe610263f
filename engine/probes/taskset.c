// SPDX-License-Identifier: MIT
/*
 * taskset: a set of periodic tasks runs as it is written, each burning its execution time (paper row D6;
 * Delgado & Choi 2020, algorithm 2). Late activations are run late, none is skipped.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>

#include "base/commands.h"
#include "base/error.h"
#include "base/slot_ring.h"
#include "base/series.h"
#include "base/stream.h"
#include "frame/burn.h"
#include "frame/frame.h"
#include "frame/task_list.h"
#include "rt/clock.h"
#include "rt/memory.h"
#include "rt/wait.h"
#include "verbs.h"

#define LEAD_NS (NS_PER_S / 20) /* from `go` to time 0: every thread waits by then */
#define DRAIN_NS (NS_PER_S / 5)
#define RING_SPAN_NS (4 * NS_PER_S)
#define RING_MOST 65536
#define RING_LEAST 64
#define SEGMENTS 8192
#define MILLION 1000000
#define MOST_MILLIONTHS 950000 /* what Linux itself leaves to real-time tasks by default */
#define HOG_PERCENT 97
#define FORCED_NS (10 * NS_PER_S)
#define AFTER_NS (NS_PER_S / 10) /* beyond the last deadline, for what is late */
#define MARGIN_NS 50000		 /* budget of a deadline task above its execution time, and 5 % of that */

enum metric { LATENCY, RESPONSE, FROM_START, PERIOD, JITTER, TARDINESS, EXECUTION, PREEMPTIONS, METRICS };

static const struct {
	const char *metric, *unit;
} metrics[METRICS] = {
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
} wanted = {.pin = 1};

static const struct option_entry table[] = {
	{.name = "tasks",
	 .kind = OPTION_TEXT,
	 .value = &wanted.tasks,
	 .help = "a line a task: cpu priority period execution deadline offset name (ns)"},
	FRAME_OPTION_POLICY_ALL,
	{.name = "execution",
	 .kind = OPTION_CHOICE,
	 .value = &wanted.execution,
	 .choices = execution_names,
	 .help = "time is burnt by"},
	{.name = "pin",
	 .kind = OPTION_CHOICE,
	 .value = &wanted.pin,
	 .choices = frame_on_off,
	 .help = "hold each task on its CPU; off: for deadline tasks without an exclusive cpuset"},
	{.name = "timeline-ns",
	 .kind = OPTION_INT,
	 .value = &wanted.timeline_ns,
	 .min = 0,
	 .max = 3600 * NS_PER_S,
	 .help = "write who ran when, from time 0 for so long"},
	{.name = "force",
	 .kind = OPTION_FLAG,
	 .value = &wanted.force,
	 .help = "run a set that overloads its CPU"},
	FRAME_OPTION_DURATION,
	FRAME_OPTION_WARM_UP,
	FRAME_OPTIONS_MACHINE,
};

/* What an activation leaves; the rest follows from it. */
struct sample {
	int64_t number, start_ns, finish_ns, execution_ns, preemptions;
};

struct task {
	/* the measuring thread's own */
	_Alignas(CACHE_LINE) struct slot_ring ring;
	struct sample *slots;
	struct burn_trace trace;
	int64_t lost, unfinished;

	struct frame_thread thread;
	const struct task_entry *entry;
	struct burn_cost cost;
	int64_t start_ns; /* release of activation 0 */
	int64_t total, limit_ns;
	_Atomic bool traced; /* the trace is complete */

	/* the drain's */
	bool trace_written;
	int64_t last_number, last_start_ns;
	struct series series[METRICS];
};

static struct task_entry entries[TASK_LIST_MOST];
static struct task *tasks[TASK_LIST_MOST];
static int task_count;
static struct frame_thread *threads[TASK_LIST_MOST];
static struct frame_thread *measurers[TASK_LIST_MOST * METRICS];
static struct series *series[TASK_LIST_MOST * METRICS];
static bool overloaded;
static _Atomic int through; /* tasks that are done with their measured activations */

static int check_overload(void)
{
	for (int i = 0; i < task_count; i++) {
		int64_t millionths = task_list_utilisation(entries, task_count, entries[i].cpu);

		if (millionths <= MOST_MILLIONTHS)
			continue;
		if (!wanted.force)
			return error_line(
				STATUS_USAGE, "overload",
				"the tasks want %" PRId64 ".%" PRId64
				" %% of CPU %d, above 95 %%: the rest of the machine would starve; use "
				"--force to run them for 10 s at the most",
				millionths / 10000, millionths / 1000 % 10, entries[i].cpu);
		overloaded = true;
	}
	if (overloaded &&
	    (!frame_wanted.duration_ns || frame_wanted.duration_ns + frame_wanted.warm_up_ns > FORCED_NS))
		return error_line(
			STATUS_USAGE, "overload",
			"a set that overloads its CPU is run for 10 s at the most, warm-up included; "
			"give a shorter --duration");
	return 0;
}

static int check_deadlines(void)
{
	for (int i = 0; i < task_count; i++) {
		if (frame_wanted.policy == POLICY_DEADLINE && entries[i].deadline_ns > entries[i].period_ns)
			return error_line(STATUS_USAGE, "task-set",
					  "task %d: SCHED_DEADLINE takes no deadline beyond the period",
					  i + 1);
	}
	if (!wanted.pin && frame_wanted.policy != POLICY_DEADLINE)
		return error_line(STATUS_USAGE, "usage",
				  "--pin off is for --policy deadline: other policies have their CPUs");
	return 0;
}

static int check(void)
{
	int status;

	task_count = wanted.tasks ? task_list_parse(wanted.tasks, entries) : task_list_parse("", entries);
	if (task_count < 0)
		return STATUS_USAGE;
	status = check_deadlines();
	if (!status)
		status = check_overload();
	frame_wanted.priority = 1;
	for (int i = 0; i < task_count; i++) {
		cpuset_add(&frame_wanted.cpus, (unsigned int)entries[i].cpu);
		if (entries[i].priority > frame_wanted.priority)
			frame_wanted.priority = entries[i].priority;
	}
	return status;
}

static void keep(struct task *t, const struct sample *sample)
{
	size_t slot;

	if (!slot_ring_next(&t->ring, &slot)) {
		t->lost++;
		return;
	}
	t->slots[slot] = *sample;
	slot_ring_push(&t->ring);
}

/* The activation: wait, read the clock, burn, read the clock. false: it was cut off. */
static inline bool activate(struct task *t, int64_t number, struct sample *sample)
{
	int64_t release_ns = t->start_ns + number * t->entry->period_ns;
	bool traced = release_ns < t->start_ns - t->entry->offset_ns + wanted.timeline_ns;
	const struct timespec release = ns_timespec(release_ns);

	do {
		wait_until_monotonic(&release);
		sample->start_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (atomic_load_explicit(&frame_shared.stop, memory_order_relaxed) ||
		    sample->start_ns >= t->limit_ns)
			return false;
	} while (commands_cut_short(release_ns, sample->start_ns));
	sample->number = number;
	sample->finish_ns = burn((enum burn_by)wanted.execution, t->entry->execution_ns, sample->start_ns,
				 t->limit_ns, &t->cost, traced ? &t->trace : NULL, number);
	if (!traced)
		atomic_store_explicit(&t->traced, true, memory_order_release);
	return sample->finish_ns >= 0;
}

static int64_t involuntary(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

static void run_task(struct frame_thread *thread)
{
	struct task *t = (struct task *)((char *)thread - offsetof(struct task, thread));
	int64_t cpu_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID), switches = involuntary(), number;
	int64_t warm_up_until_ns = t->series[0].start_ns + frame_wanted.warm_up_ns;
	bool measuring = false;
	struct sample sample;

	for (number = 0; number < t->total; number++) {
		int64_t then_cpu_ns = cpu_ns, then_switches = switches;

		if (!measuring && t->start_ns + number * t->entry->period_ns >= warm_up_until_ns) {
			usage_read(thread->schedstat, &thread->before);
			measuring = true;
		}
		if (!activate(t, number, &sample))
			break;
		cpu_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
		switches = involuntary();
		sample.execution_ns = cpu_ns - then_cpu_ns;
		sample.preemptions = switches - then_switches;
		keep(t, &sample);
	}
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = measuring;
	atomic_fetch_add(&through, 1);
	if (t->total != INT64_MAX && !atomic_load(&frame_shared.stop))
		t->unfinished = t->total - number;
	/* Others are still at work on what was released before the end: they are pre-empted as before. */
	while (number < INT64_MAX && atomic_load(&through) < task_count && activate(t, number, &sample))
		number++;
	atomic_store_explicit(&t->traced, true, memory_order_release);
}

static int prepare(struct frame_thread *thread)
{
	struct task *t = (struct task *)((char *)thread - offsetof(struct task, thread));

	burn_calibrate(&t->cost);
	return 0;
}

static size_t ring_size(const struct task_entry *entry)
{
	size_t size = RING_LEAST;

	while (size < RING_MOST && (int64_t)size * entry->period_ns < RING_SPAN_NS)
		size *= 2;
	return size;
}

static struct task *make_task(int n)
{
	const struct task_entry *entry = &entries[n];
	struct task *t = memory_get(sizeof(*t));
	size_t size = ring_size(entry);
	int64_t runtime_ns = entry->execution_ns + entry->execution_ns / 20 + MARGIN_NS;

	if (!t)
		return NULL;
	t->slots = memory_get(size * sizeof(*t->slots));
	t->trace.segments = memory_get(SEGMENTS * sizeof(*t->trace.segments));
	if (!t->slots || !t->trace.segments)
		return NULL;
	slot_ring_init(&t->ring, size);
	t->trace.size = SEGMENTS;
	t->entry = entry;
	t->last_number = -2;
	t->thread.cpu = entry->cpu;
	t->thread.free = !wanted.pin;
	t->thread.policy = (enum policy)frame_wanted.policy;
	t->thread.priority = entry->priority;
	t->thread.deadline =
		(struct deadline){runtime_ns < entry->deadline_ns ? runtime_ns : entry->deadline_ns,
				  entry->deadline_ns, entry->period_ns};
	t->thread.prepare = prepare;
	t->thread.measure = run_task;
	for (int m = 0; m < METRICS; m++) {
		struct series *s = &t->series[m];

		s->id = (unsigned int)(n * METRICS + m);
		s->cpu = entry->cpu;
		s->metric = metrics[m].metric;
		s->unit = metrics[m].unit;
		s->labels[0] = (struct label){"task", entry->name};
		series[s->id] = s;
	}
	measurers[t->series[LATENCY].id] = &t->thread;
	threads[n] = &t->thread;
	return t;
}

static int make(struct frame *f)
{
	for (int n = 0; n < task_count; n++) {
		tasks[n] = make_task(n);
		if (!tasks[n])
			return frame_no_memory();
	}
	f->hog_percent = overloaded ? MILLION : HOG_PERCENT;
	f->thread_count = (unsigned int)task_count;
	f->series_count = (unsigned int)task_count * METRICS;
	return 0;
}

static void set_times(int64_t base_ns)
{
	int64_t measured_ns = frame_wanted.duration_ns ? frame_wanted.duration_ns : INT64_MAX;
	int64_t length_ns = frame_wanted.warm_up_ns + frame_wanted.duration_ns, last_ns = 0;

	for (int n = 0; n < task_count; n++) {
		if (entries[n].deadline_ns > last_ns)
			last_ns = entries[n].deadline_ns;
	}
	for (int n = 0; n < task_count; n++) {
		struct task *t = tasks[n];
		int64_t left_ns = length_ns - t->entry->offset_ns;

		t->start_ns = base_ns + t->entry->offset_ns;
		t->total = INT64_MAX;
		t->limit_ns = INT64_MAX;
		if (frame_wanted.duration_ns) {
			t->total = left_ns <= 0 ? 0 : (left_ns - 1) / t->entry->period_ns + 1;
			t->limit_ns = base_ns + length_ns + last_ns + AFTER_NS;
		}
		for (int m = 0; m < METRICS; m++)
			series_timed(&t->series[m], base_ns, frame_wanted.warm_up_ns, measured_ns);
	}
}

static void feed(struct task *t, const struct sample *sample, struct json *j)
{
	int64_t release_ns = t->start_ns + sample->number * t->entry->period_ns;
	int64_t response_ns = sample->finish_ns - release_ns;
	int64_t values[METRICS] = {
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
			    "the timeline of this task had %u segments more than could be kept",
			    t->trace.dropped);
}

/* Takes what is in the rings; false: every thread has ended and every ring is empty. */
static bool take(struct json *j)
{
	bool alive = false;

	for (int n = 0; n < task_count; n++) {
		struct task *t = tasks[n];
		bool done = atomic_load(&t->thread.done);
		size_t slot;

		while (slot_ring_pop(&t->ring, &slot))
			feed(t, &t->slots[slot], j);
		if (wanted.timeline_ns && !t->trace_written &&
		    atomic_load_explicit(&t->traced, memory_order_acquire))
			write_trace(t, j);
		alive |= !done;
	}
	return alive;
}

static void tell_unfinished(struct json *j)
{
	for (int n = 0; n < task_count; n++) {
		struct task *t = tasks[n];

		for (int m = 0; m < METRICS; m++)
			t->series[m].lost = t->lost;
		if (t->unfinished > 0)
			stream_mark(j, "unfinished", SEVERITY_DOUBTFUL, (int)t->series[LATENCY].id,
				    "%" PRId64 " activations of task %s were released and not finished at "
				    "the end, late or not begun: they are in no figure",
				    t->unfinished, t->entry->name);
	}
}

static void hello(struct json *j)
{
	json_open(j, "busy_loop", '[');
	for (int n = 0; n < task_count; n++) {
		json_open(j, NULL, '{');
		json_str(j, "task", tasks[n]->entry->name);
		json_int(j, "cpu", tasks[n]->entry->cpu);
		json_int(j, "pass_ns", tasks[n]->cost.pass_ns);
		json_int(j, "thread_clock_ns", tasks[n]->cost.thread_clock_ns);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static int run(struct frame *f)
{
	int64_t length_ns = INT64_MAX;

	set_times(clock_now_ns(CLOCK_MONOTONIC) + LEAD_NS);
	frame_go(f);
	if (frame_wanted.duration_ns)
		length_ns = frame_wanted.warm_up_ns + frame_wanted.duration_ns;
	frame_watch(f, length_ns);
	frame_drain(f, take, DRAIN_NS);
	tell_unfinished(&f->j);
	return frame_finish(f, "duration");
}

int verb_taskset(int argc, char **argv)
{
	static struct frame frame = {
		.name = "taskset",
		.table = table,
		.options = sizeof(table) / sizeof(table[0]),
		.check = check,
		.make = make,
		.run = run,
		.hello = hello,
		.threads = threads,
		.series = series,
		.measurers = measurers,
	};

	return frame_run(&frame, argc, argv);
}
