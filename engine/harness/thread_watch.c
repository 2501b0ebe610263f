// SPDX-License-Identifier: MIT
#include "harness/thread_watch.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/stream.h"
#include "rt/cpu_holder.h"
#include "rt/watchdog.h"

static _Atomic uint64_t drain_progress;
static struct watched watched[PROBE_CPUS_MAX];
static struct watchdog watchdog = {.stop = &harness_shared.stop, .progress = &drain_progress};

void thread_watch_add(unsigned int index, struct harness_thread *t)
{
	if (index < PROBE_CPUS_MAX)
		watched[index] = (struct watched){t->tid, t->cpu_clock, &t->done, t->free ? -1 : t->cpu,
						  &t->given_up_ns};
}

void harness_watch(struct harness *h, int64_t length_ns)
{
	watchdog.threads = watched;
	watchdog.count = h->thread_count < PROBE_CPUS_MAX ? h->thread_count : PROBE_CPUS_MAX;
	watchdog.limit_ns = length_ns;
	watchdog.hog_percent = h->hog_percent;
	watchdog.allowed = h->cpus->affinity;
	pthread_getcpuclockid(pthread_self(), &watchdog.drain_clock);
	if (harness_options.policy != POLICY_OTHER && watchdog_start(&watchdog))
		stream_mark(&h->j, "watchdog", SEVERITY_NOTE, -1,
			    "the watchdog is off, because its thread could not be started");
}

void thread_watch_drained(void)
{
	atomic_fetch_add(&drain_progress, 1);
}

/* Returns the first series of this CPU; -1: none. */
static int series_on(const struct harness *h, int cpu)
{
	for (unsigned int i = 0; i < h->series_count; i++) {
		if (h->series[i]->cpu == cpu)
			return (int)h->series[i]->id;
	}
	return -1;
}

/* Reports each thread that does not get its CPU, once, with the reason. */
void thread_watch_tell(struct harness *h)
{
	char holder[160];
	const struct held_thread *held = &watchdog.held;

	if (!atomic_load(&watchdog.held_found))
		return;
	stream_mark(
		&h->j, "cpu-held", SEVERITY_DOUBTFUL, series_on(h, held->cpu),
		"%s kept CPU %d for %lld ms or more, so the measuring thread could not run: end that task, "
		"lower its priority, or choose other CPUs with --cpu",
		held->holder_known ? cpu_holder_text(&held->holder, holder, sizeof(holder))
				   : "a task that /proc does not show, or the kernel,",
		held->cpu, (long long)(held->waited_ns / (NS_PER_S / 1000)));
	atomic_store(&watchdog.held_found, false);
}

void thread_watch_end(void)
{
	atomic_store(&watchdog.ended, true);
}

const char *thread_watch_why(void)
{
	return atomic_load(&watchdog.bitten) ? watchdog.why : NULL;
}

bool thread_watch_is_over(void)
{
	return atomic_load(&watchdog.over);
}
