/* SPDX-License-Identifier: MIT
 *
 * How many moments a step keeps, so that its record stays small.
 */
#ifndef RTGAUGE_MOMENT_BUDGET_H
#define RTGAUGE_MOMENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define MOMENTS_MAX INT64_C(200)

struct moment_budget {
	int64_t half_ns; /* see moment_budget_has; 0: keep only rare moments once the usual number is kept */
	int64_t moments, bytes;
	int64_t latest_ns, latest_end_ns; /* the latency of the newest kept moment, and its end */
};

/* Returns whether there is room for a moment. `rare`: a maximum, a trigger or a thread's longest wait.
 *
 * Once the usual number of moments is kept, a recorder goes on with the largest of each stretch: a latency
 * that is larger than the newest kept one, which counts half as much after each `half_ns`. Within a sixteenth
 * of `half_ns`, it must be twice as large, so that latencies that grow slowly are not all kept. */
bool moment_budget_has(const struct moment_budget *b, bool rare, int64_t latency_ns, int64_t end_ns);

/* Counts a moment. The caller adds its bytes. `latency_ns`: 0 if it has none, as a wait or a trigger. */
void moment_budget_take(struct moment_budget *b, int64_t latency_ns, int64_t end_ns);

#endif
