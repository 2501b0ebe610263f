// SPDX-License-Identifier: MIT
#include "ext/schedulability/engine/task.h"

#include <stddef.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/commands.h"
#include "base/container_of.h"
#include "base/memory.h"
#include "base/usage.h"
#include "rt/runtime.h"
#include "rt/wait.h"

#define RING_SPAN_NS (4 * NS_PER_S)
#define RING_MAX 65536
#define RING_MIN 64
#define SEGMENTS 8192
#define COUNTINGS 200

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

static int64_t involuntary(void)
{
	struct rusage counted;

	if (!RUNTIME_COUNTS_SWITCHES)
		return 0;
	if (RUNTIME_IS_COKERNEL) {
		struct usage usage;

		usage_read(-1, &usage);
		return usage.involuntary_switches;
	}
	return getrusage(RUSAGE_THREAD, &counted) ? 0 : counted.ru_nivcsw;
}

/* Runs one activation: waits, reads the clock, burns, reads the clock. Returns false if it was cut off. */
static inline bool activate(struct task *t, int64_t number, struct sample *sample, int64_t *switches)
{
	int64_t release_ns = t->start_ns + number * t->entry->period_ns;
	bool traced = release_ns < t->start_ns - t->entry->offset_ns + t->timeline_ns;
	const struct timespec release = ns_timespec(release_ns);

	do {
		wait_until_monotonic(&release);
		sample->start_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (atomic_load_explicit(&harness_shared.stop, memory_order_relaxed) ||
		    sample->start_ns >= t->limit_ns)
			return false;
	} while (commands_cut_short(release_ns, sample->start_ns));
	if (RUNTIME_IS_COKERNEL) /* both kinds of its switches have one count, and the sleep's own switch
				    comes before */
		*switches = involuntary();
	sample->number = number;
	sample->finish_ns = busy_loop(t->execution, t->entry->execution_ns, sample->start_ns, t->limit_ns,
				      &t->cost, traced ? &t->trace : NULL, number, &sample->execution_ns);
	if (!traced)
		atomic_store_explicit(&t->traced, true, memory_order_release);
	return sample->finish_ns >= 0;
}

static void run_task(struct harness_thread *thread)
{
	struct task *t = container_of(thread, struct task, thread);
	int64_t cpu_ns = usage_own_cpu_ns(), switches = involuntary(), number;
	int64_t warm_up_until_ns = t->series[0].start_ns + harness_options.warm_up_ns;
	bool measuring = false;
	struct sample sample;

	for (number = 0; number < t->total; number++) {
		int64_t then_cpu_ns = cpu_ns, then_switches = switches;

		if (!measuring && t->start_ns + number * t->entry->period_ns >= warm_up_until_ns) {
			usage_read(thread->schedstat, &thread->before);
			measuring = true;
		}
		if (!activate(t, number, &sample, &then_switches))
			break;
		cpu_ns = usage_own_cpu_ns();
		switches = involuntary();
		if (RUNTIME_COUNTS_SWITCHES) /* otherwise the time of the loop */
			sample.execution_ns = cpu_ns - then_cpu_ns;
		sample.preemptions = switches - then_switches;
		keep(t, &sample);
	}
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = measuring;
	atomic_fetch_sub(t->others, 1);
	if (t->total != INT64_MAX && !atomic_load(&harness_shared.stop))
		t->unfinished = t->total - number;
	/* Other tasks still run activations released before the end, and are preempted as before. */
	while (number < INT64_MAX && atomic_load(t->others) > 0 && activate(t, number, &sample, &switches))
		number++;
	atomic_store_explicit(&t->traced, true, memory_order_release);
}

static int prepare(struct harness_thread *thread)
{
	struct task *t = container_of(thread, struct task, thread);

	busy_loop_calibrate(&t->cost);
	t->counting_ns = INT64_MAX;
	for (int i = 0; i < COUNTINGS; i++) {
		int64_t before_ns = clock_now_ns(CLOCK_MONOTONIC), took_ns;

		usage_own_cpu_ns();
		involuntary();
		took_ns = clock_now_ns(CLOCK_MONOTONIC) - before_ns;
		if (took_ns < t->counting_ns)
			t->counting_ns = took_ns;
	}
	return 0;
}

static size_t ring_size(const struct task_entry *entry)
{
	size_t size = RING_MIN;

	while (size < RING_MAX && (int64_t)size * entry->period_ns < RING_SPAN_NS)
		size *= 2;
	return size;
}

bool task_make(struct task *t, const struct task_entry *entry)
{
	size_t size = ring_size(entry);

	t->slots = memory_get(size * sizeof(*t->slots));
	t->trace.segments = memory_get(SEGMENTS * sizeof(*t->trace.segments));
	if (!t->slots || !t->trace.segments)
		return false;
	slot_ring_init(&t->ring, size);
	t->trace.size = SEGMENTS;
	t->entry = entry;
	t->thread.prepare = prepare;
	t->thread.measure = run_task;
	return true;
}
