// SPDX-License-Identifier: MIT
#include "harness/mode_switches.h"

#include "base/stream.h"
#include "harness/peer_process.h"
#include "rt/runtime.h"

void mode_switches_tell(const struct harness *h, struct json *j)
{
	const char *cause = runtime_switch_cause();
	int64_t sum = 0;
	unsigned int counted = 0;

	for (unsigned int i = 0; i < h->thread_count; i++) {
		const struct harness_thread *t = h->threads[i];
		int64_t count = t->after.mode_switches - t->before.mode_switches;

		if (!t->usage_known)
			continue;
		counted++;
		sum += count;
		if (RUNTIME_COUNTS_SWITCHES && count)
			stream_mark(j, "mode-switches", SEVERITY_DOUBTFUL, t->series,
				    "the co-kernel handed the measuring thread on CPU %d over to Linux %lld "
				    "times%s%s, so Linux caused some of these latencies",
				    t->cpu, (long long)count, cause ? ", the last time for " : "",
				    cause ? cause : "");
	}
	if (RUNTIME_COUNTS_SWITCHES && h->peer && h->peer->started) {
		counted++;
		sum = h->peer->switches < 0 || sum < 0 ? -1 : sum + h->peer->switches;
		if (h->peer->switches > 0)
			stream_mark(j, "mode-switches", SEVERITY_DOUBTFUL, -1,
				    "the co-kernel handed the second process, on CPU %d, over to Linux %lld "
				    "times, so Linux caused some of these latencies",
				    h->peer->cpu, (long long)h->peer->switches);
	}
	if (!RUNTIME_COUNTS_SWITCHES)
		sum = runtime_switches_of_all();
	if (!RUNTIME_COUNTS_SWITCHES && sum > 0)
		stream_mark(
			j, "mode-switches", SEVERITY_DOUBTFUL, -1,
			"the co-kernel handed threads over to Linux %lld times while the probe measured (it "
			"counts for the whole machine), so Linux may have caused some of these latencies",
			(long long)sum);
	else if (sum < 0)
		stream_mark(j, "mode-switches", SEVERITY_NOTE, -1,
			    "it is unknown how often the co-kernel handed threads over to Linux while the "
			    "probe measured");
	stream_result(j, "cokernel");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_str(j, "name", RUNTIME_NAME);
	json_uint(j, "threads", counted);
	if (sum < 0)
		json_null(j, "mode_switches");
	else
		json_int(j, "mode_switches", sum);
	stream_result_end(j);
}
