/* SPDX-License-Identifier: MIT */
/* How many threads are asked for, by number or by meaning (Garre et al. 2014, sec. 4). */
#ifndef RTGAUGE_TIRE_THREADS_H
#define RTGAUGE_TIRE_THREADS_H

#include <stdbool.h>

#include "base/cpuset.h"

#define TIRE_THREADS_MAX 1024

/* text: a number, or one, cores, hardware-threads, twice, of these CPUs. false after an `error` line. */
bool tire_threads_read(const char *text, const struct cpuset *cpus, unsigned int *threads);

#endif
