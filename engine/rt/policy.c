// SPDX-License-Identifier: MIT
#include "rt/policy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAP_SYS_NICE_BIT 23

const char *const policy_names[] = {"fifo", "rr", "other", NULL};
const char *const policy_all_names[] = {"fifo", "rr", "other", "deadline", NULL};

int policy_sched_setscheduler(pid_t tid, int kernel_policy, const struct sched_param *param)
{
	return (int)syscall(SYS_sched_setscheduler, tid, kernel_policy, param);
}

int policy_set(enum policy policy, int priority)
{
	static const int kernel_policy[] = {SCHED_FIFO, SCHED_RR, SCHED_OTHER};
	struct sched_param param = {.sched_priority = policy == POLICY_OTHER ? 0 : priority};

	return policy_sched_setscheduler(0, kernel_policy[policy], &param) ? errno : 0;
}

int policy_try(enum policy policy, int priority)
{
	struct sched_param before;
	int kernel_policy = (int)syscall(SYS_sched_getscheduler, 0);
	int error;

	if (kernel_policy < 0 || syscall(SYS_sched_getparam, 0, &before))
		return errno;
	error = policy_set(policy, priority);
	if (!error && policy_sched_setscheduler(0, kernel_policy, &before))
		error = errno;
	return error;
}

bool policy_may_nice(void)
{
	char line[256];
	uint64_t effective = 0;
	FILE *file = fopen("/proc/self/status", "re");

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "CapEff:", 7))
			effective = strtoull(line + 7, NULL, 16);
	}
	fclose(file);
	return effective >> CAP_SYS_NICE_BIT & 1;
}

/* The path of our group in the v1 `cpu` hierarchy; false where there is none. */
static bool cpu_group(char *path, size_t size)
{
	char line[4096];
	bool found = false;
	FILE *file = fopen("/proc/self/cgroup", "re");

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		char *names = strchr(line, ':');
		char *group = names ? strchr(names + 1, ':') : NULL;
		char *rest = NULL;

		if (!group)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		for (char *name = strtok_r(names + 1, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
			if (!strcmp(name, "cpu")) {
				snprintf(path, size, "/sys/fs/cgroup/cpu%s/cpu.rt_runtime_us", group);
				found = true;
			}
		}
	}
	fclose(file);
	return found;
}

static bool group_has_no_runtime(char *path, size_t size)
{
	char runtime[32] = "";
	FILE *file;

	if (!cpu_group(path, size))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(runtime, sizeof(runtime), file))
		runtime[0] = '\0';
	fclose(file);
	return !strcmp(runtime, "0\n");
}

char *policy_refusal(int error, int priority, bool other, char *text, size_t size)
{
	const char *without = other ? ", or measure with --policy other" : "";
	struct rlimit limit = {0};
	char path[4200];

	if (error != EPERM) {
		snprintf(text, size, "real-time priority %d was refused: %s", priority, strerror(error));
		return text;
	}
	if (group_has_no_runtime(path, sizeof(path))) {
		snprintf(
			text, size,
			"real-time scheduling is refused because this process is in a cgroup without real-time runtime (%s is 0): write a runtime there (for example 950000), or move the shell to the root group",
			path);
		return text;
	}
	if (policy_may_nice()) {
		snprintf(
			text, size,
			"real-time scheduling is refused although this process has CAP_SYS_NICE: a container's or security module's rule forbids it; run outside of it%s",
			without);
		return text;
	}
	getrlimit(RLIMIT_RTPRIO, &limit);
	if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur > 0) {
		snprintf(
			text, size,
			"real-time priority %d is refused: the limit of this user (RLIMIT_RTPRIO) is %llu; use --priority %llu, raise rtprio in /etc/security/limits.conf, or run as root",
			priority, (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_cur);
		return text;
	}
	snprintf(
		text, size,
		"real-time scheduling is refused: not root%s, no CAP_SYS_NICE, and RLIMIT_RTPRIO is 0; run as root, or raise rtprio in /etc/security/limits.conf%s",
		geteuid() ? "" : "'s full rights", without);
	return text;
}
