// SPDX-License-Identifier: MIT
#include "harness/measuring_options.h"

#include <stddef.h>

const char *const harness_on_off[] = {"off", "on", NULL};

struct harness_options harness_options = {
	.priority = 98,
	.warm_up_ns = NS_PER_S / 5,
	.policy = POLICY_FIFO,
	.memory_lock = 1,
};

const struct option_entry harness_option_cpu[] = {
	{.name = "cpu",
	 .kind = OPTION_CPUS,
	 .value = &harness_options.cpus,
	 .help = "CPUs to measure, such as 0-3,6; default: all online CPUs"},
	{0},
};

const struct option_entry harness_option_policy[] = {
	{.name = "policy",
	 .kind = OPTION_CHOICE,
	 .value = &harness_options.policy,
	 .choices = policy_names,
	 .help = "scheduling policy"},
	{0},
};

const struct option_entry harness_option_priority[] = {
	{.name = "priority",
	 .kind = OPTION_INT,
	 .value = &harness_options.priority,
	 .min = 1,
	 .max = 99,
	 .help = "real-time priority"},
	{0},
};

const struct option_entry harness_option_duration[] = {
	{.name = "duration-ns",
	 .kind = OPTION_INT,
	 .value = &harness_options.duration_ns,
	 .min = 0,
	 .max = INT64_MAX / 4,
	 .help = "length of the measured phase; 0: measure until stopped"},
	{0},
};

const struct option_entry harness_option_count[] = {
	{.name = "count",
	 .kind = OPTION_INT,
	 .value = &harness_options.count,
	 .min = 0,
	 .max = INT64_MAX / 4},
	{0},
};

const struct option_entry harness_option_warm_up[] = {
	{.name = "warm-up-ns",
	 .kind = OPTION_INT,
	 .value = &harness_options.warm_up_ns,
	 .min = 0,
	 .max = 3600 * NS_PER_S,
	 .help = "length of the warm-up before the measured phase; its samples do not count"},
	{0},
};

static const char *const spaces[] = {"user", "kernel", NULL};

const struct option_entry harness_option_space[] = {
	{.name = "space", .kind = OPTION_CHOICE, .choices = spaces},
	{0},
};

const struct option_entry harness_options_machine[] = {
	{.name = "dma-latency-us",
	 .kind = OPTION_INT,
	 .value = &harness_options.dma_latency_us,
	 .min = -1,
	 .max = INT32_MAX,
	 .help = "allow the CPUs only C-states that they leave within this time; -1: allow all C-states"},
	{.name = "memory-lock",
	 .kind = OPTION_CHOICE,
	 .value = &harness_options.memory_lock,
	 .choices = harness_on_off,
	 .help = "lock all memory of the process"},
	{.name = "samples-dir",
	 .kind = OPTION_TEXT,
	 .value = &harness_options.samples_dir,
	 .help = "folder for raw samples"},
	{.name = "go",
	 .kind = OPTION_FLAG,
	 .value = &harness_options.go,
	 .help = "begin at once, without waiting for a command on standard input"},
	{0},
};

const struct option_entry harness_options_measuring[] = {
	{.shared = harness_option_policy},   {.shared = harness_option_priority},
	{.shared = harness_option_duration}, {.shared = harness_option_warm_up},
	{.shared = harness_options_machine}, {0},
};
