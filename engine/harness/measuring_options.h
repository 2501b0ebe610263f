/* SPDX-License-Identifier: MIT */
/* The options that measuring probes share, with their values and tables. */
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

/* Constant after the threads start. A probe may set other defaults before it calls harness_run. */
extern struct harness_options harness_options;

extern const char *const harness_on_off[];

/* The space of the measured task. */
enum space { SPACE_USER, SPACE_KERNEL };

/* Tables with one option each. The probe sets the help of `count`, and the value and help of `space`. */
extern const struct option_entry harness_option_cpu[], harness_option_policy[], harness_option_priority[],
	harness_option_duration[], harness_option_count[], harness_option_warm_up[], harness_option_space[];

/* Options for memory, C-states, samples and the beginning. */
extern const struct option_entry harness_options_machine[];

/* Options for policy, priority, duration and warm-up, and the ones above. */
extern const struct option_entry harness_options_measuring[];

#endif
