/* SPDX-License-Identifier: MIT */
/* A probe between a master and a slave: the options that say which line and which of the two this engine is,
 * and on which CPUs they run. */
#ifndef RTGAUGE_SIGNAL_ROLES_H
#define RTGAUGE_SIGNAL_ROLES_H

#include <stdint.h>

#include "base/options.h"
#include "harness/cpus.h"
#include "signal/path.h"

struct role_options {
	const char *path;
	int role; /* enum path_role */
	int64_t slave_cpu;
};

/* Constant once harness_run has read it. */
extern struct role_options role_options;

#define ROLES_OPTION_PATH                                                                                    \
	{                                                                                                    \
		.name = "path", .kind = OPTION_TEXT, .value = &role_options.path,                            \
		.help = "loop:KIND, udp:ADDRESS:PORT or gpio:CHIP:LINES"                                     \
	}
#define ROLES_OPTION_ROLE(what)                                                                              \
	{                                                                                                    \
		.name = "role", .kind = OPTION_CHOICE, .value = &role_options.role,                          \
		.choices = path_role_names, .help = (what)                                                   \
	}
#define ROLES_OPTION_SLAVE_CPU                                                                               \
	{                                                                                                    \
		.name = "slave-cpu", .kind = OPTION_INT, .value = &role_options.slave_cpu, .min = -1,        \
		.max = CPUSET_MAX - 1, .help = "with --role both; -1: one beside the master's"               \
	}

/*
 * A role that is alone has the first CPU that was asked for. Of both the master has it, and the slave has
 * --slave-cpu or, where that is negative, one beside it. They are then the measured ones. 0, or the exit
 * status after an `error` line.
 */
int roles_cpus(struct probe_cpus *cpus, int cpu[2]);

#endif
