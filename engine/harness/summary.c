// SPDX-License-Identifier: MIT
#include "harness/summary.h"

#include <inttypes.h>

#include "base/samples_file.h"
#include "base/stream.h"

void summary_write(struct series *s, const struct harness_thread *t, struct json *j)
{
	struct usage usage;

	if (t && t->usage_known) {
		usage = t->after;
		usage.voluntary_switches -= t->before.voluntary_switches;
		usage.involuntary_switches -= t->before.involuntary_switches;
		usage.minor_faults -= t->before.minor_faults;
		usage.major_faults -= t->before.major_faults;
		usage.cpu_ns -= t->before.cpu_ns;
		if (usage.run_delay_ns >= 0)
			usage.run_delay_ns -= t->before.run_delay_ns;
	}
	series_end(s, atomic_load(&harness_shared.stop), j);
	series_summary(s, t && t->usage_known ? &usage : NULL, j);
	if (s->lost)
		stream_mark(j, "samples-lost", SEVERITY_INVALID, (int)s->id,
			    "%" PRId64 " samples of CPU %d were measured and could not be kept", s->lost,
			    s->cpu);
	if (s->impossible && s->timed)
		stream_mark(j, "impossible-latency", SEVERITY_INVALID, (int)s->id,
			    "an end lay before its beginning %" PRId64
			    " times: the clocks of the CPUs differ",
			    s->impossible);
	else if (s->impossible)
		stream_mark(j, "impossible-latency", SEVERITY_INVALID, (int)s->id,
			    "CPU %d woke before its time %" PRId64 " times: its clock or timer is wrong",
			    s->cpu, s->impossible);
	if (s->samples && !samples_close(s))
		s->unwritable = true;
}
