// SPDX-License-Identifier: MIT
#include "harness/summary.h"

#include "base/samples_file.h"
#include "base/stream.h"
#include "rt/runtime.h"

/* Unreadable values stay -1. */
static void subtract_before(int64_t *count, int64_t before)
{
	if (*count >= 0)
		*count -= before;
}

void summary_write(struct series *s, const struct harness_thread *t, struct json *j)
{
	struct usage usage;

	if (t && t->usage_known) {
		usage = t->after;
		subtract_before(&usage.voluntary_switches, t->before.voluntary_switches);
		subtract_before(&usage.involuntary_switches, t->before.involuntary_switches);
		subtract_before(&usage.minor_faults, t->before.minor_faults);
		subtract_before(&usage.major_faults, t->before.major_faults);
		subtract_before(&usage.cpu_ns, t->before.cpu_ns);
		subtract_before(&usage.run_delay_ns, t->before.run_delay_ns);
		if (RUNTIME_IS_COKERNEL)
			subtract_before(&usage.mode_switches, t->before.mode_switches);
	}
	series_end(s, atomic_load(&harness_shared.stop), j);
	series_summary(s, t && t->usage_known ? &usage : NULL, j);
	if (s->lost)
		stream_mark(j, "samples-lost", SEVERITY_INVALID, (int)s->id,
			    "%lld samples of CPU %d were measured, but the engine could not keep them",
			    (long long)s->lost, s->cpu);
	if (s->impossible && s->timed)
		stream_mark(j, "impossible-latency", SEVERITY_INVALID, (int)s->id,
			    "%lld measured times are negative, so the clocks of the CPUs differ",
			    (long long)s->impossible);
	else if (s->impossible)
		stream_mark(j, "impossible-latency", SEVERITY_INVALID, (int)s->id,
			    "CPU %d woke early %lld times, so its clock or timer is wrong", s->cpu,
			    (long long)s->impossible);
	if (s->samples && !samples_close(s))
		s->unwritable = true;
}
