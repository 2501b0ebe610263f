// SPDX-License-Identifier: MIT
#include "ext/tire/engine/threads.h"

#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "harness/cpus.h"

/* Returns the number of cores of these CPUs. */
static unsigned int count_cores(const struct cpuset *cpus)
{
	struct cpuset left = *cpus, core;
	unsigned int cores = 0;

	for (int cpu = cpuset_next(&left, 0); cpu >= 0; cpu = cpuset_next(&left, 0)) {
		placement_core(cpu, &core);
		for (size_t i = 0; i < CPUSET_MAX / 64; i++)
			left.word[i] &= ~core.word[i];
		cores++;
	}
	return cores;
}

bool tire_threads_read(const char *text, const struct cpuset *cpus, unsigned int *threads)
{
	int64_t number;

	if (!strcmp(text, "one"))
		number = 1;
	else if (!strcmp(text, "cores"))
		number = count_cores(cpus);
	else if (!strcmp(text, "hardware-threads"))
		number = cpuset_count(cpus);
	else if (!strcmp(text, "twice"))
		number = 2 * (int64_t)cpuset_count(cpus);
	else if (!options_int(text, &number))
		return !usage_error(
			"--threads %.100s is unknown; give a number, or \"one\", \"cores\", \"hardware-threads\" or "
			"\"twice\"",
			text);
	if (number < 1 || number > TIRE_THREADS_MAX)
		return !usage_error("the number of threads must be from 1 to %d, not %lld", TIRE_THREADS_MAX,
				    (long long)number);
	*threads = (unsigned int)number;
	return true;
}
