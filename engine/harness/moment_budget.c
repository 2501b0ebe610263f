/* SPDX-License-Identifier: MIT */
#include "harness/moment_budget.h"

/* Beyond these limits, a step keeps only rare moments, up to the later limits. */
#define BYTES_MAX (INT64_C(32) << 20)
#define ALL_MOMENTS_MAX (5 * MOMENTS_MAX)
#define ALL_BYTES_MAX (2 * BYTES_MAX)

/* Returns the power of two at or below a latency. */
static int size_of(int64_t latency_ns)
{
	return latency_ns > 0 ? 63 - __builtin_clzll((unsigned long long)latency_ns) : 0;
}

bool moment_budget_has(const struct moment_budget *b, bool rare, int64_t latency_ns, int64_t end_ns)
{
	bool usual = !b->every_ns && b->moments < MOMENTS_MAX && b->bytes < BYTES_MAX;
	bool more = b->moments < ALL_MOMENTS_MAX && b->bytes < ALL_BYTES_MAX;

	return usual || (rare && more) ||
	       (b->every_ns && b->due_ns[size_of(latency_ns)] - end_ns <= (MOMENT_BURST - 1) * b->every_ns);
}

void moment_budget_take(struct moment_budget *b, int64_t latency_ns, int64_t end_ns)
{
	int64_t *due_ns = &b->due_ns[size_of(latency_ns)];

	b->moments++;
	if (!latency_ns)
		return;
	*due_ns = (*due_ns > end_ns ? *due_ns : end_ns) + b->every_ns;
	if (*due_ns >
	    end_ns + MOMENT_BURST * b->every_ns) /* rare moments came oftener, and cost no later ones */
		*due_ns = end_ns + MOMENT_BURST * b->every_ns;
}
