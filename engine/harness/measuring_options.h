/* SPDX-License-Identifier: MIT */
/* The options of every measuring probe, and the entries of its table that read them. */
#ifndef RTGAUGE_MEASURING_OPTIONS_H
#define RTGAUGE_MEASURING_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/cpuset.h"
#include "base/options.h"
#include "rt/policy.h"

struct harness_options {
	struct cpuset cpus;
	int64_t priority, duration_ns, count, warm_up_ns, dma_latency_us;
	int policy, memory_lock;
	const char *samples_dir;
	bool go;
};

/* Constant once the threads are started. A probe may set other defaults before it calls harness_run. */
extern struct harness_options harness_options;

extern const char *const harness_on_off[];

/* Where the measured task runs. */
enum space { SPACE_USER, SPACE_KERNEL };
extern const char *const harness_spaces[];

#define HARNESS_OPTION_CPU                                                                                   \
	{                                                                                                    \
		.name = "cpu", .kind = OPTION_CPUS, .value = &harness_options.cpus,                          \
		.help = "CPUs to measure: 0-3,6; default all online"                                         \
	}
#define HARNESS_OPTION_POLICY                                                                                \
	{                                                                                                    \
		.name = "policy", .kind = OPTION_CHOICE, .value = &harness_options.policy,                   \
		.choices = policy_names, .help = "scheduling"                                                \
	}
#define HARNESS_OPTION_POLICY_ALL                                                                            \
	{                                                                                                    \
		.name = "policy", .kind = OPTION_CHOICE, .value = &harness_options.policy,                   \
		.choices = policy_all_names, .help = "scheduling"                                            \
	}
#define HARNESS_OPTION_PRIORITY                                                                              \
	{                                                                                                    \
		.name = "priority", .kind = OPTION_INT, .value = &harness_options.priority, .min = 1,        \
		.max = 99, .help = "real-time priority (98)"                                                 \
	}
#define HARNESS_OPTION_DURATION                                                                              \
	{                                                                                                    \
		.name = "duration-ns", .kind = OPTION_INT, .value = &harness_options.duration_ns, .min = 0,  \
		.max = INT64_MAX / 4, .help = "of the measured phase; 0: until stopped"                      \
	}
#define HARNESS_OPTION_COUNT(what)                                                                           \
	{                                                                                                    \
		.name = "count", .kind = OPTION_INT, .value = &harness_options.count, .min = 0,              \
		.max = INT64_MAX / 4, .help = (what)                                                         \
	}
#define HARNESS_OPTION_WARM_UP                                                                               \
	{                                                                                                    \
		.name = "warm-up-ns", .kind = OPTION_INT, .value = &harness_options.warm_up_ns, .min = 0,    \
		.max = 3600 * NS_PER_S, .help = "set aside at the beginning (500000000)"                     \
	}
#define HARNESS_OPTION_SPACE(variable, what)                                                                 \
	{                                                                                                    \
		.name = "space", .kind = OPTION_CHOICE, .value = (variable), .choices = harness_spaces,      \
		.help = (what)                                                                               \
	}
/* What a probe at a real-time or normal policy has; counted: what --count counts. */
#define HARNESS_OPTIONS_MEASURING(counted)                                                                   \
	HARNESS_OPTION_POLICY, HARNESS_OPTION_PRIORITY, HARNESS_OPTION_DURATION,                             \
		HARNESS_OPTION_COUNT(counted), HARNESS_OPTION_WARM_UP, HARNESS_OPTIONS_MACHINE
/* How memory, C-states, samples and the beginning are handled. */
#define HARNESS_OPTIONS_MACHINE                                                                              \
	{.name = "dma-latency-us",                                                                           \
	 .kind = OPTION_INT,                                                                                 \
	 .value = &harness_options.dma_latency_us,                                                           \
	 .min = -1,                                                                                          \
	 .max = INT32_MAX,                                                                                   \
	 .help = "keep C-states within this exit latency (0); -1: leave them"},                              \
		{.name = "memory-lock",                                                                      \
		 .kind = OPTION_CHOICE,                                                                      \
		 .value = &harness_options.memory_lock,                                                      \
		 .choices = harness_on_off,                                                                  \
		 .help = "lock memory"},                                                                     \
		{.name = "samples-dir",                                                                      \
		 .kind = OPTION_TEXT,                                                                        \
		 .value = &harness_options.samples_dir,                                                      \
		 .help = "folder for raw samples"},                                                          \
	{                                                                                                    \
		.name = "go", .kind = OPTION_FLAG, .value = &harness_options.go,                             \
		.help = "begin at once and do not read standard input"                                       \
	}

#endif
