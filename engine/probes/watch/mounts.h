/* SPDX-License-Identifier: MIT */
/* Where open files are: in memory, on a disk of this machine, or on a server, which may never answer. */
#ifndef RTGAUGE_WATCH_MOUNTS_H
#define RTGAUGE_WATCH_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

enum place { NO_PLACE, IN_MEMORY, LOCAL, REMOTE };

/* Finds where an open file of owner is, by the mounts that tid sees, without asking its file system.
 * NO_PLACE: on a mount that it does not see. Returns false if the file is closed. */
bool mounts_place(pid_t tid, pid_t owner, int fd, enum place *place);

#endif
