/* SPDX-License-Identifier: MIT */
/* Asks the kernel about network interfaces by netlink. It has no request that changes anything. */
#ifndef RTGAUGE_NETLINK_H
#define RTGAUGE_NETLINK_H

#include <stdbool.h>

#include "agent/file.h"

/* Returns whether the name is `netlink:KIND:INTERFACE` or `netlink:route:ADDRESS` (docs/formats/agent.md). */
bool netlink_is_name(const char *name);

/* Reads the kernel's messages, without the last one, which only ends the answer. Returns 0 or an errno.
 * ENODEV: there is no such interface; ENOTSUP: the kernel or the driver does not answer this. */
int netlink_read(const char *name, struct bytes *bytes);

#endif
