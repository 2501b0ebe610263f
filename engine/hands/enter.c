// SPDX-License-Identifier: MIT
/* Runs a program in a control group. */
#include <errno.h>
#include <unistd.h>

#include "hands/args.h"
#include "hands/cgroup.h"
#include "hands/errname.h"
#include "verbs.h"

int verb_enter(int argc, char **argv)
{
	bool dashes;
	int rest, error, status = args_parse(argc, argv, NULL, 0, &rest, &dashes);

	if (status)
		return status;
	if (dashes || argc - rest < 2 || argv[rest][0] != '/')
		return usage_error(
			"enter takes a control group and a program: enter /sys/fs/cgroup/... PROGRAM ARG...");
	error = cgroup_is(argv[rest]) ? cgroup_put(argv[rest], 0) : EINVAL;
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "group",
				  "the control group %.200s cannot be entered: %s", argv[rest],
				  errname(error));
	execvp(argv[rest + 1], argv + rest + 1);
	return error_line(STATUS_CANNOT_MEASURE, "program", "'%.200s' cannot be started: %s", argv[rest + 1],
			  errname(errno));
}
