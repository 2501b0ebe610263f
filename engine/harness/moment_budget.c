/* SPDX-License-Identifier: MIT */
#include "harness/moment_budget.h"

/* Beyond these limits, only rare moments are kept, up to the later limits. */
#define BYTES_MAX (INT64_C(32) << 20)
#define ALL_MOMENTS_MAX (5 * MOMENTS_MAX)
#define ALL_BYTES_MAX (2 * BYTES_MAX)

static int64_t faded_ns(const struct moment_budget *b, int64_t end_ns)
{
	int64_t halvings = (end_ns - b->latest_end_ns) / b->half_ns;

	if (halvings <= 0)
		return b->latest_ns;
	return halvings < 63 ? b->latest_ns >> halvings : 0;
}

bool moment_budget_has(const struct moment_budget *b, bool rare, int64_t latency_ns, int64_t end_ns)
{
	bool usual = b->moments < MOMENTS_MAX && b->bytes < BYTES_MAX;
	bool more = b->moments < ALL_MOMENTS_MAX && b->bytes < ALL_BYTES_MAX;

	bool soon = end_ns - b->latest_end_ns < b->half_ns / 16;

	return usual || (rare && more) ||
	       (b->half_ns && (soon ? latency_ns / 2 : latency_ns) > faded_ns(b, end_ns));
}

void moment_budget_take(struct moment_budget *b, int64_t latency_ns, int64_t end_ns)
{
	b->moments++;
	if (!latency_ns)
		return;
	b->latest_ns = latency_ns;
	b->latest_end_ns = end_ns;
}
