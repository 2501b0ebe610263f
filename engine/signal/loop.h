/* SPDX-License-Identifier: MIT */
/* What the paths within one machine and one engine share. */
#ifndef RTGAUGE_PATH_LOOP_H
#define RTGAUGE_PATH_LOOP_H

#include "signal/path.h"

/* Both roles are this engine's and nothing more is said of the path. 0, or the exit status after an `error`
 * line. */
int loop_check(const char *rest, enum path_role role, const char *name);

/* The `error` line of a path that the kernel does not give; gives the exit status. */
int loop_refused(const char *name);

/* Edges as messages that hold their number: what is written to `out` and read, all that is there, from `in`.
 */
int loop_send(struct path_end *end, int64_t number);
int loop_receive(struct path_end *end, struct edge *edge);

#endif
