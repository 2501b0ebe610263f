// SPDX-License-Identifier: MIT
/*
 * watch: the threads of somebody else's program, by the kernel's tracepoints of wake-ups and switches.
 * Released is a thread when it is woken; its latency is until it runs, its response until it sleeps again.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "agent/process.h"
#include "base/error.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/tracefs.h"
#include "harness/harness.h"
#include "probes/watch/activations.h"
#include "probes/watch/cost.h"
#include "probes/watch/sched_events.h"
#include "probes/watch/threads.h"
#include "rt/clock.h"
#include "rt/memory.h"
#include "verbs.h"

#define DRAIN_NS (NS_PER_S / 20)
#define OTHERS_MAX 12 /* who is told by name, of those that preempt a thread or wake it */
#define SLEEPS_MAX 8

enum metric { LATENCY, RESPONSE, EXECUTION, PERIOD, METRICS };

static const char *const metrics[METRICS] = {"latency", "response", "execution", "period"};

static struct {
	int64_t pid;
	const char *threads, *instance;
} options;

static const struct option_entry table[] = {
	{.name = "pid",
	 .kind = OPTION_INT,
	 .value = &options.pid,
	 .min = 1,
	 .max = INT32_MAX,
	 .help = "the program to watch"},
	{.name = "threads",
	 .kind = OPTION_TEXT,
	 .value = &options.threads,
	 .help = "names of its threads, with commas between; those with a real-time policy, or all"},
	{.name = "trace-instance",
	 .kind = OPTION_TEXT,
	 .value = &options.instance,
	 .help = "the instance of tracefs in which the kernel records"},
	HARNESS_OPTION_DURATION,
	HARNESS_OPTION_WARM_UP,
	HARNESS_OPTIONS_MACHINE,
	HARNESS_OPTIONS_EXPLAIN,
};

/* Who did something to a thread, and how often. */
struct other {
	char name[32];
	int64_t count;
};

struct follower {
	struct watched_thread thread;
	char label[40];
	struct watch_track track;
	struct thread_counts before, after;
	struct other preempted_by[OTHERS_MAX], woken_by[OTHERS_MAX], sleeps_in[SLEEPS_MAX];
	int64_t activations, preemptions;
	int cpu; /* on which the activation that is fed began */
	struct series series[METRICS];
};

static struct follower *followers[WATCH_THREADS_MAX];
static struct series *series[WATCH_THREADS_MAX * METRICS];
static int count, left_out;
static int64_t start_ns, measured_from_ns, end_ns, dropped;
static struct process program;
static struct json *out;
static struct harness harness;

static int check(void)
{
	harness_options.policy = POLICY_OTHER; /* nothing of ours is real-time */
	harness_options.warm_up_ns += WATCH_COST_NS;
	if (!options.pid)
		return usage_error("--pid is missing: which program is to be watched?");
	if (options.instance && !tracefs_is_name(options.instance))
		return usage_error("--trace-instance %.80s: letters, digits, - and _, at most 64",
				   options.instance);
	if (!process_read((pid_t)options.pid, &program))
		return error_line(STATUS_USAGE, "no-program", "there is no program with the number %lld",
				  (long long)options.pid);
	return 0;
}

/* Unique among the threads. */
static void name_thread(struct follower *f, int number)
{
	snprintf(f->label, sizeof(f->label), "%s", f->thread.name);
	for (int i = 0; i < number; i++) {
		if (!strcmp(followers[i]->label, f->label))
			snprintf(f->label, sizeof(f->label), "%s-%d", f->thread.name, (int)f->thread.tid);
	}
}

static int make(struct harness *h)
{
	static struct watched_thread threads[WATCH_THREADS_MAX];

	count = threads_find((pid_t)options.pid, options.threads, threads, &left_out);
	if (count <= 0)
		return error_line(STATUS_USAGE, "no-program",
				  count ? "the program %lld has ended"
					: "no thread of the program %lld has such a name",
				  (long long)options.pid);
	for (int i = 0; i < count; i++) {
		struct follower *f = followers[i] = memory_get(sizeof(*f));

		if (!f)
			return harness_no_memory();
		f->thread = threads[i];
		f->track.tid = threads[i].tid;
		name_thread(f, i);
		for (int m = 0; m < METRICS; m++) {
			struct series *s = series[i * METRICS + m] = &f->series[m];

			s->id = (unsigned int)(i * METRICS + m);
			s->cpu = -1;
			s->metric = metrics[m];
			s->labels[0] = (struct label){"task", f->label};
		}
	}
	h->thread_count = 0;
	h->series_count = (unsigned int)count * METRICS;
	return 0;
}

static pid_t tids[WATCH_THREADS_MAX];

static int begin_events(struct harness *h)
{
	(void)h;
	if (!options.instance)
		return 0; /* it is only tried whether all else is as it should be */
	for (int i = 0; i < count; i++)
		tids[i] = followers[i]->thread.tid;
	return sched_events_open(options.instance, tids, count);
}

/* The last place is for all who have none of their own. */
static void count_other(struct other *others, int places, const char *name)
{
	for (int i = 0; i < places; i++) {
		if (!others[i].count)
			snprintf(others[i].name, sizeof(others[i].name), "%s",
				 i == places - 1 ? "others" : name);
		if (!strcmp(others[i].name, name) || i == places - 1) {
			others[i].count++;
			return;
		}
	}
}

static void count_waker(struct follower *f, const struct sched_event *event)
{
	char path[64], name[32] = "a task that has ended";
	FILE *file;

	if (event->hardirq || event->softirq) {
		count_other(f->woken_by, OTHERS_MAX, event->hardirq ? "interrupt" : "softirq");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)event->current);
	file = fopen(path, "re");
	if (file && fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
	count_other(f->woken_by, OTHERS_MAX, name);
}

static void feed(struct follower *f, const struct watch_activation *a)
{
	f->cpu = a->cpu;
	if (!a->done) {
		series_feed_timed(&f->series[LATENCY], a->release_ns, a->start_ns - a->release_ns, out);
		if (a->period_ns)
			series_feed_timed(&f->series[PERIOD], a->release_ns, a->period_ns, out);
		return;
	}
	series_feed_timed(&f->series[RESPONSE], a->release_ns, a->end_ns - a->release_ns, out);
	series_feed_timed(&f->series[EXECUTION], a->release_ns, a->execution_ns, out);
	if (a->release_ns >= measured_from_ns && a->release_ns < end_ns)
		f->activations++;
}

static void take_event(const struct sched_event *event)
{
	struct watch_activation activation;
	bool preempted, measured = event->time_ns >= measured_from_ns && event->time_ns < end_ns;

	if (event->time_ns < start_ns)
		return;
	for (int i = 0; i < count; i++) {
		struct follower *f = followers[i];
		bool its = event->to == f->track.tid ||
			   (event->kind == SCHED_SWITCH && event->from == f->track.tid);

		if (!its)
			continue;
		if (event->kind == SCHED_WAKING && measured && f->track.state == WATCH_ASLEEP)
			count_waker(f, event);
		if (watch_track_event(&f->track, event, &activation, &preempted))
			feed(f, &activation);
		if (preempted && measured) {
			f->preemptions++;
			count_other(f->preempted_by, OTHERS_MAX, event->to_name);
		}
	}
}

static void count_sleeps(void)
{
	for (int i = 0; i < count; i++) {
		const char *name = thread_syscall((pid_t)options.pid, followers[i]->thread.tid);

		if (name)
			count_other(followers[i]->sleeps_in, SLEEPS_MAX, name);
	}
}

static void count_all(bool at_end)
{
	for (int i = 0; i < count; i++) {
		struct follower *f = followers[i];

		thread_count((pid_t)options.pid, f->thread.tid, at_end ? &f->after : &f->before);
		if (!at_end)
			f->after = f->before;
	}
}

/* The program's own counts of the measured phase are read when it begins, and each time until it ends. */
static void count_in_phase(int64_t now_ns)
{
	static bool begun;

	if (now_ns < measured_from_ns)
		return;
	count_all(begun);
	begun = true;
	count_sleeps();
}

static bool take(struct json *j)
{
	bool goes_on = !atomic_load(&harness_shared.stop), lost = false;
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	out = j;
	sched_events_take(take_event, !goes_on, &lost);
	dropped += lost;
	if (goes_on && watch_cost_turn(now_ns))
		lost = true;
	if (lost) {
		for (int i = 0; i < count; i++)
			watch_track_lost(&followers[i]->track);
	}
	for (unsigned int i = 0; i < harness.series_count; i++)
		series[i]->reached_ns = now_ns;
	if (goes_on)
		count_in_phase(now_ns);
	if (goes_on && now_ns >= end_ns)
		harness_end_by(&harness, "duration");
	else if (goes_on && !process_lives((pid_t)options.pid, program.start))
		harness_end_by(&harness, "program-ended");
	return goes_on;
}

static int run(struct harness *h)
{
	int64_t measured_ns = harness_options.duration_ns ? harness_options.duration_ns : INT64_MAX;

	if (!options.instance)
		return usage_error("--trace-instance is missing");
	start_ns = clock_now_ns(CLOCK_MONOTONIC);
	measured_from_ns = start_ns + harness_options.warm_up_ns;
	end_ns = measured_ns == INT64_MAX ? INT64_MAX : measured_from_ns + measured_ns;
	for (unsigned int i = 0; i < h->series_count; i++)
		series_timed(series[i], start_ns, harness_options.warm_up_ns, measured_ns);
	watch_cost_begin(start_ns, (pid_t)options.pid, tids, count);
	harness_go(h);
	harness_drain(h, take, DRAIN_NS);
	sched_events_close();
	return harness_finish(h, "duration");
}

static void write_others(const struct follower *f, const char *name, const struct other *others, int places,
			 const char *key, struct json *j)
{
	for (int i = 0; i < places && others[i].count; i++) {
		stream_result(j, name);
		json_str(j, "task", f->label);
		json_str(j, key, others[i].name);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "count", others[i].count);
		stream_result_end(j);
	}
}

static void tell_untold(struct json *j)
{
	for (int i = 0; i < count; i++) {
		if (followers[i]->track.untold)
			stream_mark(
				j, "switches-missing", SEVERITY_DOUBTFUL,
				(int)followers[i]->series[LATENCY].id,
				"of %lld activations of %s the kernel did not tell when they began to run: they are in no figure",
				(long long)followers[i]->track.untold, followers[i]->label);
	}
}

static void conclude(struct json *j)
{
	static const char *const policies[] = {"other", "fifo", "rr",	    "batch",
					       "iso",	"idle", "deadline", "ext"};

	for (int i = 0; i < count; i++) {
		const struct follower *f = followers[i];
		int policy = f->thread.policy;

		stream_result(j, "thread");
		json_str(j, "task", f->label);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "tid", f->thread.tid);
		json_str(j, "policy", policy >= 0 && policy < 8 ? policies[policy] : "unknown");
		json_int(j, "priority", f->thread.priority);
		json_int(j, "activations", f->activations);
		json_int(j, "untold", f->track.untold);
		json_int(j, "preemptions", f->preemptions);
		json_int(j, "voluntary_switches", f->after.voluntary_switches - f->before.voluntary_switches);
		json_int(j, "involuntary_switches",
			 f->after.involuntary_switches - f->before.involuntary_switches);
		json_int(j, "minor_faults", f->after.minor_faults - f->before.minor_faults);
		json_int(j, "major_faults", f->after.major_faults - f->before.major_faults);
		stream_result_end(j);
		write_others(f, "preempted-by", f->preempted_by, OTHERS_MAX, "by", j);
		write_others(f, "woken-by", f->woken_by, OTHERS_MAX, "by", j);
		write_others(f, "sleeps-in", f->sleeps_in, SLEEPS_MAX, "syscall", j);
	}
	watch_cost_write(j);
	tell_untold(j);
	if (dropped)
		stream_mark(j, "trace-dropped", SEVERITY_DOUBTFUL, -1,
			    "the kernel dropped events %lld time(s): activations around are in no figure",
			    (long long)dropped);
	if (left_out)
		stream_mark(
			j, "threads-left-out", SEVERITY_NOTE, -1,
			"%d threads more than can be watched at once are left out: name those of interest",
			left_out);
}

static bool explained(const struct series *s, struct explained *who)
{
	const struct follower *f = followers[s->id / METRICS];

	if (s->id % METRICS != LATENCY && s->id % METRICS != RESPONSE)
		return false;
	*who = (struct explained){f->cpu, f->thread.tid};
	return true;
}

static struct harness harness = {
	.table = table,
	.option_count = sizeof(table) / sizeof(table[0]),
	.check = check,
	.make = make,
	.started = begin_events,
	.run = run,
	.conclude = conclude,
	.explained = explained,
	.series = series,
};

static int verb_watch(int argc, char **argv)
{
	return harness_run(&harness, argc, argv);
}

PROBE("watch", verb_watch,
      "the threads of a program: wake-ups, latency, response, execution, who preempts them")
