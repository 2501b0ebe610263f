/* SPDX-License-Identifier: MIT */
/* On which CPUs a master and a slave run. */
#ifndef RTGAUGE_FRAME_ROLES_H
#define RTGAUGE_FRAME_ROLES_H

#include <stdint.h>

#include "frame/cpus.h"
#include "paths/path.h"

/*
 * A role that is alone has the first CPU that was asked for. Of both the master has it, and the slave has
 * slave_cpu or, where that is negative, one beside it. They are then the measured ones. 0, or the exit status
 * after an `error` line.
 */
int roles_cpus(struct probe_cpus *cpus, enum path_role role, int64_t slave_cpu, int cpu[2]);

#endif
