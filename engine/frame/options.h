/* SPDX-License-Identifier: MIT */
/* The options that every measuring probe has, and the entries of its table that read them. */
#ifndef RTGAUGE_FRAME_OPTIONS_H
#define RTGAUGE_FRAME_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/options.h"
#include "rt/clock.h"
#include "rt/policy.h"

struct frame_options {
	struct cpuset cpus;
	int64_t priority, duration_ns, count, warm_up_ns, dma_latency_us;
	int policy, memory_lock;
	const char *samples_dir;
	bool go;
};

/* Constant once the threads are started. A probe may set other defaults before it calls frame_open. */
extern struct frame_options frame_wanted;

extern const char *const frame_on_off[];

#define FRAME_OPTION_CPU                                                                                     \
	{                                                                                                    \
		.name = "cpu", .kind = OPTION_CPUS, .value = &frame_wanted.cpus,                             \
		.help = "CPUs to measure: 0-3,6; default all allowed"                                        \
	}
#define FRAME_OPTION_POLICY                                                                                  \
	{                                                                                                    \
		.name = "policy", .kind = OPTION_CHOICE, .value = &frame_wanted.policy,                      \
		.choices = policy_names, .help = "scheduling"                                                \
	}
#define FRAME_OPTION_POLICY_ALL                                                                              \
	{                                                                                                    \
		.name = "policy", .kind = OPTION_CHOICE, .value = &frame_wanted.policy,                      \
		.choices = policy_all_names, .help = "scheduling"                                            \
	}
#define FRAME_OPTION_PRIORITY                                                                                \
	{                                                                                                    \
		.name = "priority", .kind = OPTION_INT, .value = &frame_wanted.priority, .min = 1,           \
		.max = 99, .help = "real-time priority (98)"                                                 \
	}
#define FRAME_OPTION_DURATION                                                                                \
	{                                                                                                    \
		.name = "duration-ns", .kind = OPTION_INT, .value = &frame_wanted.duration_ns, .min = 0,     \
		.max = INT64_MAX / 4, .help = "of the measured phase; 0: until stopped"                      \
	}
#define FRAME_OPTION_COUNT(what)                                                                             \
	{                                                                                                    \
		.name = "count", .kind = OPTION_INT, .value = &frame_wanted.count, .min = 0,                 \
		.max = INT64_MAX / 4, .help = (what)                                                         \
	}
#define FRAME_OPTION_WARM_UP                                                                                 \
	{                                                                                                    \
		.name = "warm-up-ns", .kind = OPTION_INT, .value = &frame_wanted.warm_up_ns, .min = 0,       \
		.max = 3600 * NS_PER_S, .help = "set aside at the beginning (500000000)"                     \
	}
/* What a probe at a real-time or normal policy has; counted: what --count counts. */
#define FRAME_OPTIONS_MEASURING(counted)                                                                     \
	FRAME_OPTION_POLICY, FRAME_OPTION_PRIORITY, FRAME_OPTION_DURATION, FRAME_OPTION_COUNT(counted),      \
		FRAME_OPTION_WARM_UP, FRAME_OPTIONS_MACHINE
/* How memory, C-states, samples and the beginning are handled. */
#define FRAME_OPTIONS_MACHINE                                                                                \
	{.name = "dma-latency-us",                                                                           \
	 .kind = OPTION_INT,                                                                                 \
	 .value = &frame_wanted.dma_latency_us,                                                              \
	 .min = -1,                                                                                          \
	 .max = INT32_MAX,                                                                                   \
	 .help = "keep C-states within this exit latency (0); -1: leave them"},                              \
		{.name = "memory-lock",                                                                      \
		 .kind = OPTION_CHOICE,                                                                      \
		 .value = &frame_wanted.memory_lock,                                                         \
		 .choices = frame_on_off,                                                                    \
		 .help = "lock memory"},                                                                     \
		{.name = "samples-dir",                                                                      \
		 .kind = OPTION_TEXT,                                                                        \
		 .value = &frame_wanted.samples_dir,                                                         \
		 .help = "folder for raw samples"},                                                          \
	{                                                                                                    \
		.name = "go", .kind = OPTION_FLAG, .value = &frame_wanted.go,                                \
		.help = "begin at once and do not read standard input"                                       \
	}

#endif
