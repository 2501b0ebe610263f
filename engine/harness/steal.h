/* SPDX-License-Identifier: MIT */
/*
 * What a hypervisor took of each CPU, as the guest's kernel counts it: the field `steal` of /proc/stat
 * (Documentation/filesystems/proc.rst), in ticks of 10 ms as a rule.
 */
#ifndef RTGAUGE_STEAL_H
#define RTGAUGE_STEAL_H

#include <stdbool.h>

#include "base/json.h"

/* false: nothing was ever stolen here, or it cannot be read. */
bool steal_open(void);

/* Reads it again. */
void steal_look(void);

/* An object: CPU -> ms that were stolen between the last two looks; CPUs that lost nothing are not in it. */
void steal_write(const char *key, struct json *j);

void steal_close(void);

#endif
