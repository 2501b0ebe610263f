/* SPDX-License-Identifier: MIT
 *
 * How many moments a step keeps, so that its record stays small.
 */
#ifndef RTGAUGE_MOMENT_BUDGET_H
#define RTGAUGE_MOMENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define MOMENTS_MAX INT64_C(200)
#define MOMENT_BURST 16
#define MOMENT_SIZES 64

struct moment_budget {
	int64_t every_ns; /* see moment_budget_has; 0: keep the usual number, then only rare moments */
	int64_t moments, bytes;
	int64_t due_ns[MOMENT_SIZES]; /* of latencies of this size: when the burst is there again */
};

/* Returns whether there is room for a moment. `rare`: a maximum, a trigger or a thread's longest wait.
 *
 * A recorder keeps one latency of each size in each `every_ns`, and MOMENT_BURST at once after a quiet time.
 * Latencies from one power of two to the next have one size, so a storm hides only latencies that are about
 * as large as its own. */
bool moment_budget_has(const struct moment_budget *b, bool rare, int64_t latency_ns, int64_t end_ns);

/* Counts a moment. The caller adds its bytes. `latency_ns`: 0 if it has none, as a wait or a trigger. */
void moment_budget_take(struct moment_budget *b, int64_t latency_ns, int64_t end_ns);

#endif
