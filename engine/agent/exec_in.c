// SPDX-License-Identifier: MIT
/* Runs a program in a control group, or only on some CPUs. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/cgroup.h"
#include "agent/options.h"
#include "base/cpuset.h"
#include "base/error.h"
#include "base/verbs.h"

#define CPUS "cpus:"

/* Parses a control group (*cpus is then empty) or CPUs. Returns false for any other text. */
static bool parse_place(const char *place, struct cpuset *cpus)
{
	cpuset_clear(cpus);
	if (place[0] == '/')
		return true;
	return !strncmp(place, CPUS, strlen(CPUS)) && cpuset_parse(cpus, place + strlen(CPUS)) &&
	       cpuset_count(cpus);
}

static int enter_group(const char *dir)
{
	return cgroup_is(dir) ? cgroup_put(dir, 0) : EINVAL;
}

static int verb_enter(int argc, char **argv)
{
	struct cpuset cpus;
	bool dashes, is_group;
	int rest, error;
	int status = options_parse_operands(NULL, " PLACE PROGRAM ARG...", argc, argv, &rest, &dashes);

	if (status)
		return status < 0 ? STATUS_OK : status;
	if (dashes || argc - rest < 2 || !parse_place(argv[rest], &cpus))
		return usage_error("enter needs a control group or CPUs, and a program: enter "
				   "/sys/fs/cgroup/...|cpus:0-3,6 PROGRAM ARG...");
	is_group = argv[rest][0] == '/';
	error = is_group ? enter_group(argv[rest]) : cpuset_pin(0, &cpus);
	if (error && is_group)
		return error_line(STATUS_CANNOT_MEASURE, "group", "cannot enter the control group %.200s: %s",
				  argv[rest], errname(error));
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "cpu-not-allowed",
				  "cannot run the program on CPU %.200s: %s", argv[rest] + strlen(CPUS),
				  errname(error));
	execvp(argv[rest + 1], argv + rest + 1);
	return error_line(STATUS_CANNOT_MEASURE, "program", "'%.200s' cannot be started: %s", argv[rest + 1],
			  errname(errno));
}

AGENT_VERB("enter", verb_enter, "run a program in a control group or on some CPUs")
