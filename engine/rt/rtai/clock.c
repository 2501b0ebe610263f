// SPDX-License-Identifier: MIT
#include "rt/rtai/lxrt.h"

#include <x86intrin.h>

#include "base/clock.h"

/* Linked instead of the C library's functions, which are __real_ (ld --wrap). */
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

#define SHIFT 32

__extension__ typedef unsigned __int128 u128;

static uint64_t ns_of_count; /* ns a count, times 2^SHIFT; 0: not begun */
static uint64_t base_count;
static int64_t base_ns;

static inline uint64_t read_counter(void)
{
	_mm_lfence(); /* as in the kernel: never before an earlier reading */
	return __rdtsc();
}

void lxrt_clock_begin(int64_t hz)
{
	struct timespec now;

	__real_clock_gettime(CLOCK_MONOTONIC, &now);
	base_count = read_counter();
	base_ns = timespec_ns(&now);
	ns_of_count = (uint64_t)((((u128)NS_PER_S << SHIFT) + (uint64_t)hz / 2) / (uint64_t)hz);
}

int64_t lxrt_count_ns(long long count)
{
	return (int64_t)(((u128)(uint64_t)count * ns_of_count) >> SHIFT);
}

int64_t lxrt_now_ns(void)
{
	return base_ns + lxrt_count_ns((long long)(read_counter() - base_count));
}

/* Returns the smallest count at which lxrt_now_ns has reached the time. */
long long lxrt_count_at(int64_t time_ns)
{
	uint64_t since_ns = time_ns > base_ns ? (uint64_t)(time_ns - base_ns) : 0;
	uint64_t counts = (uint64_t)((((u128)since_ns << SHIFT) + ns_of_count - 1) / ns_of_count);

	return (long long)base_count + (long long)counts;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	if (clock != CLOCK_MONOTONIC || !ns_of_count)
		return __real_clock_gettime(clock, t);
	*t = ns_timespec(lxrt_now_ns());
	return 0;
}
