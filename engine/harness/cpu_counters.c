// SPDX-License-Identifier: MIT
#include "harness/cpu_counters.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/perf.h"
#include "base/stream.h"

/* APERF counts a CPU's cycles, MPERF the cycles that it would have had at its nominal frequency, both only
 * while it is not idle. TSC counts the nominal cycles all the time. */
enum counter { SMI, APERF, MPERF, TSC, CYCLES, INSTRUCTIONS, MISSES, COUNTERS };

static const struct {
	const char *name;
	uint64_t hardware; /* its number if its type is PERF_TYPE_HARDWARE */
} counters[COUNTERS] = {
	[SMI] = {"smi", 0},
	[APERF] = {"aperf", 0},
	[MPERF] = {"mperf", 0},
	[TSC] = {"tsc", 0},
	[CYCLES] = {"cycles", PERF_COUNT_HW_CPU_CYCLES},
	[INSTRUCTIONS] = {"instructions", PERF_COUNT_HW_INSTRUCTIONS},
	[MISSES] = {"llc_misses", PERF_COUNT_HW_CACHE_MISSES},
};

static struct {
	int64_t begun_ns;
	struct cpuset cpus;
	int (*fds)[COUNTERS]; /* of each CPU; -1: not counted */
} state;

/* Finds perf's type and number of a counter. Returns false if there is none. */
static bool find_event(enum counter counter, struct perf_event_attr *attr)
{
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	if (counter >= CYCLES) {
		perf_hardware_event(counters[counter].hardware, 0, attr); /* of the CPU's own unit */
		return true;
	}
	return perf_msr_event(counters[counter].name, attr);
}

/* Returns how many of the counters to open: on very many CPUs only the first, because a process may have only
 * so many open files. */
static enum counter wanted(void)
{
	struct rlimit files;
	rlim_t needed = (rlim_t)cpuset_count(&state.cpus) * COUNTERS;

	return !getrlimit(RLIMIT_NOFILE, &files) && needed > files.rlim_cur / 2 ? SMI + 1 : COUNTERS;
}

void cpu_counters_begin(void)
{
	struct perf_event_attr attr;
	size_t size = 0;

	if (!cpuset_online(&state.cpus))
		return;
	for (int cpu = cpuset_next(&state.cpus, 0); cpu >= 0;
	     cpu = cpuset_next(&state.cpus, (unsigned int)cpu + 1))
		size = ((size_t)cpu + 1) * sizeof(*state.fds);
	state.fds = memory_get(size);
	for (enum counter i = 0; state.fds && i < COUNTERS; i++) {
		bool found = i < wanted() && find_event(i, &attr);

		for (int cpu = cpuset_next(&state.cpus, 0); cpu >= 0;
		     cpu = cpuset_next(&state.cpus, (unsigned int)cpu + 1))
			state.fds[cpu][i] = !found ? -1
						   : (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1,
								  PERF_FLAG_FD_CLOEXEC);
	}
	state.begun_ns = clock_now_ns(CLOCK_MONOTONIC);
}

/* Returns false if there is no such counter, or if it did not count all the time because others needed its
 * register. */
static bool count_of(enum counter counter, int cpu, int64_t *value)
{
	int fd = state.fds && cpuset_has(&state.cpus, (unsigned int)cpu) ? state.fds[cpu][counter] : -1;
	struct {
		int64_t value;
		uint64_t enabled, running;
	} counted;

	if (fd < 0 || read(fd, &counted, sizeof(counted)) != sizeof(counted) ||
	    counted.running != counted.enabled)
		return false;
	*value = counted.value;
	return true;
}

/* Returns how many CPUs count SMIs, and their sum. */
static int smis(int64_t *sum)
{
	int64_t value;
	int count = 0;

	*sum = 0;
	for (int cpu = cpuset_next(&state.cpus, 0); cpu >= 0;
	     cpu = cpuset_next(&state.cpus, (unsigned int)cpu + 1)) {
		if (!count_of(SMI, cpu, &value))
			continue;
		*sum += value;
		count++;
	}
	return count;
}

int64_t cpu_counters_smis(void)
{
	int64_t sum;

	return smis(&sum) ? sum : -1;
}

/* Writes a result with the counters from first to last, if the CPU has all of them. */
static void write_counters(const char *name, enum counter first, enum counter last, int cpu, struct json *j)
{
	int64_t values[COUNTERS];

	for (enum counter i = first; i <= last; i++) {
		if (!count_of(i, cpu, &values[i]))
			return;
	}
	stream_result(j, name);
	json_int(j, "cpu", cpu);
	json_close(j, '}');
	json_open(j, "values", '{');
	for (enum counter i = first; i <= last; i++)
		json_int(j, counters[i].name, values[i]);
	json_int(j, "span_ns", clock_now_ns(CLOCK_MONOTONIC) - state.begun_ns);
	stream_result_end(j);
}

void cpu_counters_write(const struct cpuset *measured, struct json *j)
{
	int64_t sum;
	int count = smis(&sum);

	if (sum > 0)
		stream_mark(
			j, "smi", SEVERITY_DOUBTFUL, -1,
			"the processor counted %lld interruptions by the firmware (SMI) in %d CPUs; each may "
			"stop all CPUs",
			(long long)sum, count);
	for (int cpu = cpuset_next(measured, 0); cpu >= 0;
	     cpu = cpuset_next(measured, (unsigned int)cpu + 1)) {
		write_counters("frequency", APERF, TSC, cpu, j);
		write_counters("instructions", CYCLES, MISSES, cpu, j);
	}
}
