// SPDX-License-Identifier: MIT
#include "base/usage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

int usage_open(void)
{
	return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

int64_t usage_cpu_ns(pid_t tid, clockid_t clock)
{
	struct timespec used;

	(void)tid;
	return clock_gettime(clock, &used) ? 0 : timespec_ns(&used);
}

void usage_read(int schedstat, struct usage *usage)
{
	const char *delay;
	struct rusage counted = {0};
	char text[128];
	ssize_t len;

	getrusage(RUSAGE_THREAD, &counted);
	usage->voluntary_switches = counted.ru_nvcsw;
	usage->involuntary_switches = counted.ru_nivcsw;
	usage->minor_faults = counted.ru_minflt;
	usage->major_faults = counted.ru_majflt;
	usage->cpu_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
	usage->run_delay_ns = -1;
	len = schedstat < 0 ? -1 : pread(schedstat, text, sizeof(text) - 1, 0);
	if (len > 0) {
		text[len] = '\0';
		/* "<time run> <time waited> <slices>"; sscanf would add 120 KB to a static program */
		delay = strchr(text, ' ');
		if (delay && delay[1] >= '0' && delay[1] <= '9')
			usage->run_delay_ns = strtoll(delay, NULL, 10);
	}
}
