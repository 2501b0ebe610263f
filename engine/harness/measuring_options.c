// SPDX-License-Identifier: MIT
#include "harness/measuring_options.h"

#include <stddef.h>

const char *const harness_on_off[] = {"off", "on", NULL};
const char *const harness_spaces[] = {"user", "kernel", NULL};

struct harness_options harness_options = {
	.priority = 98,
	.warm_up_ns = NS_PER_S / 5,
	.policy = POLICY_FIFO,
	.memory_lock = 1,
};
