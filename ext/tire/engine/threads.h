/* SPDX-License-Identifier: MIT */
/* The number of threads, given as a number or as a word (Garre et al. 2014, sec. 4). */
#ifndef RTGAUGE_TIRE_THREADS_H
#define RTGAUGE_TIRE_THREADS_H

#include <stdbool.h>

#include "base/cpuset.h"

#define TIRE_THREADS_MAX 1024

/* Parses a number, or one, cores, hardware-threads, twice, which refer to these CPUs. Returns false after
 * an `error` line. */
bool tire_threads_read(const char *text, const struct cpuset *cpus, unsigned int *threads);

#endif
