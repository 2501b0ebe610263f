/* SPDX-License-Identifier: MIT */
/*
 * How much time a hypervisor took of each CPU, by the guest's kernel: the field `steal` of /proc/stat
 * (Documentation/filesystems/proc.rst), usually in ticks of 10 ms.
 */
#ifndef RTGAUGE_STEAL_H
#define RTGAUGE_STEAL_H

#include <stdbool.h>

#include "base/json.h"

/* Returns false if nothing was ever stolen here, or it cannot be read. */
bool steal_open(void);

/* Reads it again. */
void steal_look(void);

/* Writes an object: CPU -> ms that were stolen between the last two looks; CPUs that lost nothing are left
 * out. */
void steal_write(const char *key, struct json *j);

void steal_close(void);

#endif
