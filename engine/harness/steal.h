/* SPDX-License-Identifier: MIT */
/*
 * How much of each CPU's time a hypervisor took, as the guest's kernel reports it: the field `steal` of
 * /proc/stat (Documentation/filesystems/proc.rst), usually in ticks of 10 ms.
 */
#ifndef RTGAUGE_STEAL_H
#define RTGAUGE_STEAL_H

#include <stdbool.h>

#include "base/json.h"

/* Returns false if nothing was ever stolen here, or if it cannot be read. */
bool steal_open(void);

/* Reads the times again. */
void steal_look(void);

/* Writes an object from CPUs to ms that were stolen between the last two looks, without CPUs that lost
 * nothing. */
void steal_write(const char *key, struct json *j);

void steal_close(void);

#endif
