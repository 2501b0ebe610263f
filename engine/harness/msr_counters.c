// SPDX-License-Identifier: MIT
#include "harness/msr_counters.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stream.h"

#define MSR "/sys/bus/event_source/devices/msr/"

/* APERF counts a CPU's cycles, MPERF the cycles it would have had at its nominal frequency, both only while
 * it is not idle. TSC counts the nominal cycles all the time. */
enum counter { SMI, APERF, MPERF, TSC, COUNTERS };

static const char *const names[COUNTERS] = {"smi", "aperf", "mperf", "tsc"};

static struct {
	int64_t begun_ns;
	struct cpuset cpus;
	int (*fds)[COUNTERS]; /* of each CPU; -1: not counted; NULL: perf reads no such register */
} msr;

/* Returns false if the file has no such number. */
static bool read_number(const char *path, const char *format, unsigned int *value)
{
	FILE *file = fopen(path, "re");
	bool read = file && fscanf(file, format, value) == 1;

	if (file)
		fclose(file);
	return read;
}

void msr_counters_begin(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	unsigned int event = 0;
	size_t size = 0;

	if (!read_number(MSR "type", "%u", &attr.type) || !cpuset_online(&msr.cpus))
		return;
	for (int cpu = cpuset_next(&msr.cpus, 0); cpu >= 0;
	     cpu = cpuset_next(&msr.cpus, (unsigned int)cpu + 1))
		size = ((size_t)cpu + 1) * sizeof(*msr.fds);
	msr.fds = memory_get(size);
	for (int i = 0; msr.fds && i < COUNTERS; i++) {
		char path[sizeof(MSR) + 16];
		bool counts;

		snprintf(path, sizeof(path), MSR "events/%s", names[i]);
		counts = read_number(path, "event=%x", &event);
		attr.config = event;
		for (int cpu = cpuset_next(&msr.cpus, 0); cpu >= 0;
		     cpu = cpuset_next(&msr.cpus, (unsigned int)cpu + 1))
			msr.fds[cpu][i] = !counts ? -1
						  : (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1,
								 PERF_FLAG_FD_CLOEXEC);
	}
	msr.begun_ns = clock_now_ns(CLOCK_MONOTONIC);
}

static bool count_of(enum counter counter, int cpu, int64_t *value)
{
	int fd = msr.fds && cpuset_has(&msr.cpus, (unsigned int)cpu) ? msr.fds[cpu][counter] : -1;

	return fd >= 0 && read(fd, value, sizeof(*value)) == sizeof(*value);
}

/* Returns how many CPUs count SMIs, and their sum. */
static int smis(int64_t *sum)
{
	int64_t value;
	int count = 0;

	*sum = 0;
	for (int cpu = cpuset_next(&msr.cpus, 0); cpu >= 0;
	     cpu = cpuset_next(&msr.cpus, (unsigned int)cpu + 1)) {
		if (!count_of(SMI, cpu, &value))
			continue;
		*sum += value;
		count++;
	}
	return count;
}

int64_t msr_counters_smis(void)
{
	int64_t sum;

	return smis(&sum) ? sum : -1;
}

static void write_frequency(int cpu, struct json *j)
{
	int64_t values[COUNTERS];

	for (enum counter i = APERF; i < COUNTERS; i++) {
		if (!count_of(i, cpu, &values[i]))
			return;
	}
	stream_result(j, "frequency");
	json_int(j, "cpu", cpu);
	json_close(j, '}');
	json_open(j, "values", '{');
	for (enum counter i = APERF; i < COUNTERS; i++)
		json_int(j, names[i], values[i]);
	json_int(j, "span_ns", clock_now_ns(CLOCK_MONOTONIC) - msr.begun_ns);
	stream_result_end(j);
}

void msr_counters_write(const struct cpuset *measured, struct json *j)
{
	int64_t sum;
	int count = smis(&sum);

	if (sum > 0)
		stream_mark(
			j, "smi", SEVERITY_DOUBTFUL, -1,
			"the processor counted %lld interruptions by the firmware (SMI) in %d CPUs; each may "
			"stop all CPUs",
			(long long)sum, count);
	for (int cpu = cpuset_next(measured, 0); cpu >= 0; cpu = cpuset_next(measured, (unsigned int)cpu + 1))
		write_frequency(cpu, j);
}
