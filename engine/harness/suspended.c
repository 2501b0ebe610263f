// SPDX-License-Identifier: MIT
#include "harness/suspended.h"

#include <time.h>

#include "base/clock.h"
#include "rt/runtime.h"

int64_t suspended_at_most_ns(void)
{
	int64_t awake_ns = clock_now_ns(CLOCK_MONOTONIC);

	return runtime_linux_clock_ns(CLOCK_BOOTTIME) - awake_ns;
}

int64_t suspended_at_least_ns(void)
{
	int64_t since_boot_ns = runtime_linux_clock_ns(CLOCK_BOOTTIME);

	return since_boot_ns - clock_now_ns(CLOCK_MONOTONIC);
}
