// SPDX-License-Identifier: MIT
#include "harness/options.h"

const char *const harness_on_off[] = {"off", "on", NULL};

struct harness_options harness_options = {
	.priority = 98,
	.warm_up_ns = NS_PER_S / 2,
	.policy = POLICY_FIFO,
	.memory_lock = 1,
};
