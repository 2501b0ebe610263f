// SPDX-License-Identifier: MIT
#include "signal/roles.h"

#include "base/error.h"
#include "harness/options.h"
#include "harness/placement.h"

struct role_options role_options = {.path = "loop:eventfd", .role = PATH_BOTH, .slave_cpu = -1};

/* The master's CPU where the slave's was chosen: another one, unless the same was asked for. */
static int other_than(const struct cpuset *measured, int slave)
{
	int first = cpuset_next(measured, 0), second = cpuset_next(measured, (unsigned int)first + 1);

	return cpuset_count(&harness_options.cpus) || first != slave || second < 0 ? first : second;
}

int roles_cpus(struct probe_cpus *cpus, int cpu[2])
{
	int64_t slave_cpu = role_options.slave_cpu;
	int status = 0;

	if (slave_cpu >= 0 && role_options.role != PATH_BOTH)
		return usage_error(
			"--slave-cpu is for --role both; --cpu is the CPU of a role that is alone");
	cpu[PATH_MASTER] = cpu[PATH_SLAVE] = cpuset_next(&cpus->measured, 0);
	if (slave_cpu >= 0) {
		struct probe_cpus of_slave;
		struct cpuset asked;

		cpuset_clear(&asked);
		cpuset_add(&asked, (unsigned int)slave_cpu);
		status = probe_cpus_choose(&asked, &of_slave);
		cpu[PATH_SLAVE] = (int)slave_cpu;
		cpu[PATH_MASTER] = other_than(&cpus->measured, (int)slave_cpu);
	} else if (role_options.role == PATH_BOTH) {
		cpu[PATH_SLAVE] = placement_beside(cpus, cpu[PATH_MASTER]);
	}
	cpuset_clear(&cpus->measured);
	for (int i = 0; i < 2; i++)
		cpuset_add(&cpus->measured, (unsigned int)cpu[i]);
	return status;
}
