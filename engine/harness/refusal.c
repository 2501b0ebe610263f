// SPDX-License-Identifier: MIT
#include "harness/refusal.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "harness/harness.h"
#include "rt/cpu_holder.h"

static bool may_nice(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};

	return !syscall(SYS_capget, &header, sets) && sets[0].effective >> CAP_SYS_NICE & 1;
}

/* null: no limit. */
static void write_limit(struct json *j, const char *name, int resource)
{
	struct rlimit limit = {0};

	if (!getrlimit(resource, &limit) && limit.rlim_cur == RLIM_INFINITY)
		json_null(j, name);
	else
		json_uint(j, name, limit.rlim_cur);
}

static void write_cgroup(struct json *j)
{
	char text[4096];
	FILE *file = fopen("/proc/self/cgroup", "re");
	size_t len = file ? fread(text, 1, sizeof(text), file) : 0;

	json_strn(j, "cgroup", text, len);
	if (file)
		fclose(file);
}

/* Returns whether this is not the first user namespace. CAP_SYS_NICE counts only in the first
 * (user_namespaces(7)). */
static bool in_user_namespace(void)
{
	unsigned int inside, outside, count;
	FILE *file = fopen("/proc/self/uid_map", "re");
	int fields;

	if (!file)
		return false;
	fields = fscanf(file, "%u %u %u", &inside, &outside, &count);
	fclose(file);
	return fields != 3 || inside || outside || count != UINT32_MAX;
}

/*
 * Returns whether a seccomp filter refuses the call. For a process number below 0, the kernel itself
 * answers EINVAL before it checks permissions, so any other answer comes from the filter.
 */
static bool filtered(long call)
{
	struct sched_param parameters = {.sched_priority = 1};
	long result = call == SYS_sched_setscheduler ? syscall(call, -1, SCHED_FIFO, &parameters)
						     : syscall(call, -1, NULL, 0);

	return result < 0 && errno != EINVAL;
}

/* Capabilities and calls that a container takes away. */
static void write_container(struct json *j, long call)
{
	json_bool(j, "user_namespace", in_user_namespace());
	json_bool(j, "seccomp", filtered(call));
}

int refuse_priority(int error, int priority, bool other_allowed)
{
	struct json j;

	error_begin(&j, "permission-rt", error, "real-time priority %d is refused: %s", priority,
		    strerror(error));
	json_int(&j, "priority", priority);
	json_bool(&j, "other_allowed", other_allowed);
	json_uint(&j, "euid", geteuid());
	json_bool(&j, "cap_sys_nice", may_nice());
	write_limit(&j, "rtprio_limit", RLIMIT_RTPRIO);
	write_container(&j, SYS_sched_setscheduler);
	write_cgroup(&j);
	return error_end(&j, STATUS_CANNOT_MEASURE);
}

int refuse_deadline(int error, const struct deadline *deadline, int cpu)
{
	struct json j;

	error_begin(&j, "deadline", error, "SCHED_DEADLINE with %lld ns in each %lld ns is refused: %s",
		    (long long)deadline->runtime_ns, (long long)deadline->period_ns, strerror(error));
	json_int(&j, "runtime_ns", deadline->runtime_ns);
	json_int(&j, "period_ns", deadline->period_ns);
	if (cpu < 0)
		json_null(&j, "cpu");
	else
		json_int(&j, "cpu", cpu);
	json_bool(&j, "cap_sys_nice", may_nice());
	write_container(&j, SYS_sched_setattr);
	return error_end(&j, STATUS_CANNOT_MEASURE);
}

int refuse_held_cpu(int cpu, const char *what, const char *instead)
{
	struct thread_stat holder;
	char text[160];
	bool found = cpu_holder_find(cpu, &holder);

	return error_line(STATUS_CANNOT_MEASURE, "cpu-busy",
			  "CPU %d did not run %s for 5 s, because %s is using the CPU; end that, or choose "
			  "%s",
			  cpu, what,
			  found ? cpu_holder_text(&holder, text, sizeof(text))
				: "something with a higher priority",
			  instead);
}

int refuse_memory_lock(int error)
{
	struct json j;

	error_begin(&j, "memory-lock", error,
		    "memory cannot be locked: %s; free memory, or use --memory-lock off", strerror(error));
	write_limit(&j, "memlock_limit_bytes", RLIMIT_MEMLOCK);
	return error_end(&j, STATUS_CANNOT_MEASURE);
}

bool harness_memory_limited(void)
{
	struct rlimit limit = {0};

	return harness_options.memory_lock && geteuid() && !getrlimit(RLIMIT_MEMLOCK, &limit) &&
	       limit.rlim_cur != RLIM_INFINITY;
}

int harness_no_memory(void)
{
	if (harness_memory_limited())
		return refuse_memory_lock(ENOMEM);
	return error_line(STATUS_CANNOT_MEASURE, "internal",
			  "there is not enough memory for the samples of these CPUs; measure fewer CPUs");
}
