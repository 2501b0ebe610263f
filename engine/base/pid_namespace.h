/* SPDX-License-Identifier: MIT */
/* Whether the process IDs in /proc are the numbers that the kernel's events have. */
#ifndef RTGAUGE_PID_NAMESPACE_H
#define RTGAUGE_PID_NAMESPACE_H

#include <stdbool.h>

#define PIDS_ARE_OTHERS                                                                                        \
	"this runs in a PID namespace of its own, in which processes have other numbers than in the kernel's " \
	"events; run it in the host's namespace (docker run --pid=host; Kubernetes: hostPID: true)"

/* Returns false if /proc shows the processes of another PID namespace than the first (pid_namespaces(7)). */
bool pids_are_the_kernels(void);

#endif
