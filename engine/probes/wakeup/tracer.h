/* SPDX-License-Identifier: MIT */
/*
 * The kernel's timerlat tracer (Documentation/trace/timerlat-tracer.rst) in an instance of tracefs that
 * somebody else makes and removes. Its settings in the folder `osnoise` are the whole machine's: who makes
 * the instance notes them before and puts them back after.
 */
#ifndef RTGAUGE_WAKEUP_TRACER_H
#define RTGAUGE_WAKEUP_TRACER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "probes/wakeup/activations.h"
#include "rt/policy.h"

/* Starts it on these CPUs, each interval (100 us to 1 s, whole us). 0, or the exit status after an `error`
 * line. */
int tracer_open(const char *instance, const struct cpuset *cpus, int64_t interval_ns);

/* Whether the threads are the caller's, one a CPU, which then reads tracer_wait's file; else the kernel's. */
bool tracer_has_user(void);

/* The caller's thread, pinned to its CPU: a file each of whose reads lasts until the next activation; -1 and
 * errno. Close it before tracer_close: the kernel kills who has it open then. */
int tracer_wait_file(int cpu);

/* Gives the kernel's threads a policy. false: not all of them were found. */
bool tracer_set_policy(enum policy policy, int priority);

/* Gives the events that came on the CPU since, in their order. */
void tracer_take(int cpu, void (*take)(void *user, const struct timerlat_event *event), void *user);

/* Times at which the kernel dropped events since the beginning; *count: how many, as far as it says. */
int64_t tracer_dropped(int64_t *count);

/* It records no more; what it recorded can still be taken. */
void tracer_stop(void);

/* Ends it, with the kernel's threads. Once. */
void tracer_close(void);

#endif
