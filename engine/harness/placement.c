// SPDX-License-Identifier: MIT
#include "harness/placement.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

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
		return error_line(STATUS_CANNOT_MEASURE, "placement",
				  "%s: CPU %d has %s; choose another --placement%s",
				  placement_names[placement], *first,
				  placement == PLACEMENT_SAME_CORE
					  ? "no other hardware thread on its core that may be used"
					  : "no CPU of another core beside it that may be used",
				  placement == PLACEMENT_SAME_CORE ? "" : " or allow more CPUs");
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
