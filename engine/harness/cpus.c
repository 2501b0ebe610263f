// SPDX-License-Identifier: MIT
#include "harness/cpus.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "rt/runtime.h"

static void find_reachable(struct probe_cpus *cpus)
{
	struct cpuset one;

	cpuset_clear(&cpus->reachable);
	for (int cpu = cpuset_next(&cpus->online, 0); cpu >= 0;
	     cpu = cpuset_next(&cpus->online, (unsigned int)cpu + 1)) {
		cpuset_clear(&one);
		cpuset_add(&one, (unsigned int)cpu);
		if (cpuset_has(&cpus->affinity, (unsigned int)cpu) || !cpuset_pin(0, &one))
			cpuset_add(&cpus->reachable, (unsigned int)cpu);
	}
	cpuset_pin(0, &cpus->affinity);
}

void probe_cpus_allow(struct probe_cpus *cpus, const struct cpuset *isolated)
{
	bool narrowed = false;

	for (size_t i = 0; i < CPUSET_MAX / 64; i++)
		narrowed |= (cpus->reachable.word[i] & ~cpus->affinity.word[i] & ~isolated->word[i]) != 0;
	for (size_t i = 0; i < CPUSET_MAX / 64; i++)
		cpus->allowed.word[i] =
			cpus->reachable.word[i] & (narrowed ? cpus->affinity.word[i] : UINT64_MAX);
}

int probe_cpus_choose(const struct cpuset *asked, struct probe_cpus *cpus)
{
	struct cpuset *measured = &cpus->measured, *online = &cpus->online, *present = &cpus->present;
	struct cpuset isolated;

	if (!cpuset_allowed(&cpus->affinity))
		return error_line(STATUS_CANNOT_MEASURE, "internal",
				  "cannot read the CPU affinity of this "
				  "process");
	if (!cpuset_online(online))
		*online = cpus->affinity;
	if (!cpuset_present(present))
		*present = *online;
	if (!cpuset_isolated(&isolated))
		cpuset_clear(&isolated);
	find_reachable(cpus);
	probe_cpus_allow(cpus, &isolated);
	cpus->named = cpuset_count(asked) > 0;
	*measured = cpus->named ? *asked : cpus->allowed;
	for (int cpu = cpuset_next(measured, 0); cpu >= 0;
	     cpu = cpuset_next(measured, (unsigned int)cpu + 1)) {
		char text[256];

		if (!cpuset_has(present, (unsigned int)cpu))
			return error_line(STATUS_USAGE, "cpu-missing",
					  "there is no CPU %d; this machine has %s %s", cpu,
					  cpuset_count(present) == 1 ? "only CPU" : "CPUs",
					  cpuset_format(present, text, sizeof(text)));
		if (!cpuset_has(online, (unsigned int)cpu))
			return error_line(
				STATUS_USAGE, "cpu-offline",
				"CPU %d is offline; choose from the online CPUs (%s), or bring it back with: echo 1 > /sys/devices/system/cpu/cpu%d/online",
				cpu, cpuset_format(online, text, sizeof(text)), cpu);
		if (!cpuset_has(&cpus->reachable, (unsigned int)cpu))
			return error_line(
				STATUS_USAGE, "cpu-not-allowed",
				"the cpuset of this process does not allow CPU %d, only %s: choose one of these CPUs, or start in a cpuset with CPU %d (docker run --cpuset-cpus, cpuset.cpus of the cgroup)",
				cpu, cpuset_format(&cpus->reachable, text, sizeof(text)), cpu);
	}
	if (cpuset_count(measured) > PROBE_CPUS_MAX)
		return usage_error("rtgauge can measure at most %d CPUs at once; choose them with --cpu",
				   PROBE_CPUS_MAX);
	return 0;
}

/* Writes why a CPU is not measured. */
static const char *left_out(const struct probe_cpus *cpus, unsigned int cpu)
{
	if (!cpuset_has(&cpus->online, cpu))
		return "offline";
	if (cpus->named)
		return "not-asked";
	if (!cpuset_has(&cpus->reachable, cpu))
		return "cpuset";
	return cpuset_has(&cpus->allowed, cpu) ? "not-asked" : "affinity";
}

void probe_cpus_json(const struct probe_cpus *cpus, struct json *j)
{
	json_open(j, "cpus", '[');
	for (int cpu = cpuset_next(&cpus->measured, 0); cpu >= 0;
	     cpu = cpuset_next(&cpus->measured, (unsigned int)cpu + 1))
		json_int(j, NULL, cpu);
	json_close(j, ']');
	json_open(j, "cpus_not_measured", '[');
	for (int cpu = cpuset_next(&cpus->present, 0); cpu >= 0;
	     cpu = cpuset_next(&cpus->present, (unsigned int)cpu + 1)) {
		if (cpuset_has(&cpus->measured, (unsigned int)cpu))
			continue;
		json_open(j, NULL, '{');
		json_int(j, "cpu", cpu);
		json_str(j, "reason", left_out(cpus, (unsigned int)cpu));
		json_close(j, '}');
	}
	json_close(j, ']');
}

void probe_cpus_leave(const struct probe_cpus *cpus)
{
	struct cpuset others = cpus->affinity;

	for (size_t i = 0; i < CPUSET_MAX / 64; i++)
		others.word[i] &= ~cpus->measured.word[i];
	if (!cpuset_count(&others))
		return;
	runtime_thread_moves();
	cpuset_pin(0, &others);
}

const char *const placement_names[] = {"same-cpu", "same-core", "other-core", NULL};

void placement_core(int cpu, struct cpuset *core)
{
	char path[96], line[1024] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
	file = fopen(path, "re");
	if (file) {
		if (!fgets(line, sizeof(line), file))
			line[0] = '\0';
		fclose(file);
	}
	line[strcspn(line, "\n")] = '\0';
	if (!cpuset_parse(core, line))
		cpuset_clear(core);
	cpuset_add(core, (unsigned int)cpu);
}

static int find(const struct cpuset *among, int first, const struct cpuset *core, bool inside)
{
	for (int cpu = cpuset_next(among, 0); cpu >= 0; cpu = cpuset_next(among, (unsigned int)cpu + 1)) {
		if (cpu != first && cpuset_has(core, (unsigned int)cpu) == inside)
			return cpu;
	}
	return -1;
}

int placement_choose(struct probe_cpus *cpus, enum placement placement, int *first, int *second)
{
	struct cpuset core;

	*first = *second = cpuset_next(&cpus->measured, 0);
	if (placement != PLACEMENT_SAME_CPU) {
		placement_core(*first, &core);
		*second = find(&cpus->measured, *first, &core, placement == PLACEMENT_SAME_CORE);
		if (*second < 0)
			*second = find(&cpus->allowed, *first, &core, placement == PLACEMENT_SAME_CORE);
	}
	if (*second < 0)
		return error_lacks(STATUS_CANNOT_MEASURE, "placement", placement_names[placement],
				   placement == PLACEMENT_SAME_CORE
					   ? "choose another --placement"
					   : "choose another --placement or allow more CPUs",
				   "CPU %d lacks a %s that rtgauge may use", *first,
				   placement == PLACEMENT_SAME_CORE ? "second hardware thread on its core"
								    : "neighbouring CPU on another core");
	cpuset_clear(&cpus->measured);
	cpuset_add(&cpus->measured, (unsigned int)*first);
	cpuset_add(&cpus->measured, (unsigned int)*second);
	return 0;
}

int placement_beside(const struct probe_cpus *cpus, int first)
{
	const struct cpuset *among[] = {&cpus->measured, &cpus->allowed};
	struct cpuset core;
	int found = -1;

	placement_core(first, &core);
	for (int inside = 0; inside < 2 && found < 0; inside++) {
		for (int i = 0; i < 2 && found < 0; i++)
			found = find(among[i], first, &core, inside);
	}
	return found < 0 ? first : found;
}
