// SPDX-License-Identifier: GPL-2.0-only
/* Emulates a deep idle state in a guest: it takes 3 ms to leave it. */
#include <linux/cpuidle.h>
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/module.h>

#define EXIT_LATENCY_US 3000

static int enter(struct cpuidle_device *device, struct cpuidle_driver *driver, int index)
{
	raw_safe_halt();
	raw_local_irq_disable();
	mdelay(EXIT_LATENCY_US / 1000);
	return index;
}

static struct cpuidle_driver driver = {
	.name = "deep_idle",
	.states[1] =
		{
			.name = "DEEP",
			.desc = "emulated",
			.exit_latency = EXIT_LATENCY_US,
			.target_residency = EXIT_LATENCY_US,
			.enter = enter,
		},
	.state_count = 2,
};

static int __init load(void)
{
	cpuidle_poll_state_init(&driver);
	return cpuidle_register(&driver, NULL);
}

static void __exit unload(void)
{
	cpuidle_unregister(&driver);
}

module_init(load);
module_exit(unload);
MODULE_DESCRIPTION("Emulated deep idle state");
MODULE_LICENSE("GPL");
