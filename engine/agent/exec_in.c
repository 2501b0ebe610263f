// SPDX-License-Identifier: MIT
/* Runs a program in a control group, or on some CPUs only. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/cgroup.h"
#include "agent/options.h"
#include "base/cpuset.h"
#include "base/error.h"
#include "base/verbs.h"

#define CPUS "cpus:"

/* 0, an errno, or -1: what is named is no place. */
static int move_to(const char *place)
{
	struct cpuset cpus;

	if (place[0] == '/')
		return cgroup_is(place) ? cgroup_put(place, 0) : EINVAL;
	if (strncmp(place, CPUS, strlen(CPUS)))
		return -1;
	if (!cpuset_parse(&cpus, place + strlen(CPUS)) || !cpuset_count(&cpus))
		return -1;
	return cpuset_pin(0, &cpus);
}

static int verb_enter(int argc, char **argv)
{
	bool dashes;
	int rest, error,
		status = options_parse_operands(NULL, 0, " PLACE PROGRAM ARG...", argc, argv, &rest, &dashes);

	if (status)
		return status < 0 ? STATUS_OK : status;
	error = dashes || argc - rest < 2 ? -1 : move_to(argv[rest]);
	if (error < 0)
		return usage_error(
			"enter takes a place and a program: enter /sys/fs/cgroup/...|cpus:0-3,6 PROGRAM ARG...");
	if (error && argv[rest][0] == '/')
		return error_line(STATUS_CANNOT_MEASURE, "group",
				  "the control group %.200s cannot be entered: %s", argv[rest],
				  errname(error));
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "cpu-not-allowed",
				  "nothing can be run on CPU %.200s: %s", argv[rest] + strlen(CPUS),
				  errname(error));
	execvp(argv[rest + 1], argv + rest + 1);
	return error_line(STATUS_CANNOT_MEASURE, "program", "'%.200s' cannot be started: %s", argv[rest + 1],
			  errname(errno));
}

AGENT_VERB("enter", verb_enter, "run a program in a control group or on some CPUs")
