// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests of explanations. It keeps interrupts or preemption off on the CPU of the process
 * that writes "irqs-off MICROSECONDS" or "preempt-off MICROSECONDS" to the parameter `stall`.
 * Reading the parameter returns the last stall's beginning and end, in ns of CLOCK_MONOTONIC.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>

#define MOST_US 20000

static u64 began_ns, ended_ns;

static void wait_us(unsigned int us)
{
	began_ns = ktime_get_mono_fast_ns();
	do {
		cpu_relax();
		ended_ns = ktime_get_mono_fast_ns();
	} while (ended_ns < began_ns + us * 1000ULL);
}

/* An explanation has to name these functions. */
static noinline void rtgauge_stall_irqs_off(unsigned int us)
{
	unsigned long flags;

	local_irq_save(flags);
	wait_us(us);
	local_irq_restore(flags);
}

static noinline void rtgauge_stall_preempt_off(unsigned int us)
{
	preempt_disable();
	wait_us(us);
	preempt_enable();
}

static int stall_set(const char *text, const struct kernel_param *parameter)
{
	unsigned int us;

	if (sscanf(text, "irqs-off %u", &us) == 1 && us <= MOST_US)
		rtgauge_stall_irqs_off(us);
	else if (sscanf(text, "preempt-off %u", &us) == 1 && us <= MOST_US)
		rtgauge_stall_preempt_off(us);
	else
		return -EINVAL;
	return 0;
}

static int stall_get(char *text, const struct kernel_param *parameter)
{
	return sysfs_emit(text, "%llu %llu\n", began_ns, ended_ns);
}

static const struct kernel_param_ops stall_ops = {
	.set = stall_set,
	.get = stall_get,
};

module_param_cb(stall, &stall_ops, NULL, 0600);
MODULE_PARM_DESC(stall, "irqs-off MICROSECONDS or preempt-off MICROSECONDS, on this CPU, now");

MODULE_DESCRIPTION("rtgauge: stalls of known kind and length, for tests");
MODULE_LICENSE("GPL");
