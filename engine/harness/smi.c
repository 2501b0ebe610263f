// SPDX-License-Identifier: MIT
#include "harness/smi.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpuset.h"
#include "base/stream.h"

#define MSR "/sys/bus/event_source/devices/msr/"

static struct {
	int fds[CPUSET_MAX], count; /* of the CPUs; count 0: nothing is counted */
} smi;

/* Returns false if the file has no such number. */
static bool read_number(const char *path, const char *format, unsigned int *value)
{
	FILE *file = fopen(path, "re");
	bool read = file && fscanf(file, format, value) == 1;

	if (file)
		fclose(file);
	return read;
}

void smi_begin(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	struct cpuset online;
	unsigned int event;

	smi.count = 0;
	if (!read_number(MSR "type", "%u", &attr.type) ||
	    !read_number(MSR "events/smi", "event=%x", &event) || !cpuset_online(&online))
		return;
	attr.config = event;
	for (int cpu = cpuset_next(&online, 0); cpu >= 0 && smi.count < CPUSET_MAX;
	     cpu = cpuset_next(&online, (unsigned int)cpu + 1))
		smi.fds[smi.count++] =
			(int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int64_t smi_read(void)
{
	int64_t value, sum = 0;

	for (int i = 0; i < smi.count; i++) {
		if (read(smi.fds[i], &value, sizeof(value)) != sizeof(value))
			return -1;
		sum += value;
	}
	return smi.count ? sum : -1;
}

void smi_mark(struct json *j)
{
	int64_t smis = smi_read();

	if (smis > 0)
		stream_mark(
			j, "smi", SEVERITY_DOUBTFUL, -1,
			"the processor counted %lld interruptions by the firmware (SMI) in %d CPUs; each may "
			"stop all CPUs",
			(long long)smis, smi.count);
}
