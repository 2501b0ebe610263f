/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_ERRNAME_H
#define RTGAUGE_ERRNAME_H

/* The symbol of an errno, "EACCES"; "E<number>" for a rare one. (musl has no strerrorname_np.) */
const char *errname(int error);

#endif
