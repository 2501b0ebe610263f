/* SPDX-License-Identifier: MIT */
/* The number of threads, given by number or by meaning (Garre et al. 2014, sec. 4). */
#ifndef RTGAUGE_TIRE_THREADS_H
#define RTGAUGE_TIRE_THREADS_H

#include <stdbool.h>

#include "base/cpuset.h"

#define TIRE_THREADS_MAX 1024

/* Parses a number, or one, cores, hardware-threads, twice, of these CPUs. Returns false after an `error`
 * line. */
bool tire_threads_read(const char *text, const struct cpuset *cpus, unsigned int *threads);

#endif
