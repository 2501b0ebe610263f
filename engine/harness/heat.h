/* SPDX-License-Identifier: MIT */
/*
 * The highest temperature of each thermal zone while a probe measures
 * (Documentation/driver-api/thermal/sysfs-api.rst).
 */
#ifndef RTGAUGE_HEAT_H
#define RTGAUGE_HEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* On x86-64, to read a zone may interrupt a CPU (x86_pkg_temp) or run firmware (acpitz). There, the
 * processor itself counts how often it was too hot. */
#ifdef __x86_64__
#define HEAT_WHILE_MEASURING false
#else
#define HEAT_WHILE_MEASURING true
#endif

#define HEAT_FOLDER "/sys/class/thermal"

/* Finds the zones in a folder. If while_measuring is false, only heat_write reads them. */
void heat_begin(const char *folder, bool while_measuring);

/* Reads each zone, at most once a second. A zone that takes 1 ms or more three times in a row is left out
 * until the end. */
void heat_look(int64_t now_ns);

/* Reads each zone a last time, and writes a result `temperature` for each that could be read. Call it when
 * nothing is measured any more and the load still runs. */
void heat_write(struct json *j);

#endif
