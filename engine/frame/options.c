// SPDX-License-Identifier: MIT
#include "frame/options.h"

const char *const frame_on_off[] = {"off", "on", NULL};

struct frame_options frame_wanted = {
	.priority = 98,
	.warm_up_ns = NS_PER_S / 2,
	.policy = POLICY_FIFO,
	.memory_lock = 1,
};
