// SPDX-License-Identifier: GPL-2.0-only
/*
 * The periodic task in kernel space (Brown and Martin 2010, sec. 3.5; Adam et al. 2021, algorithm
 * A2): a high-resolution timer in hard-irq context, or a FIFO kernel thread that it wakes, toggles
 * a line or only takes time stamps.
 */
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/smp.h>

#include "compat.h"
#include "core.h"

#define PERIOD_MIN_NS 10000ULL
#define PERIOD_MAX_NS (10ULL * NSEC_PER_SEC)
#define START_AFTER_NS (10 * NSEC_PER_MSEC)
#define START_MOST_NS (60ULL * NSEC_PER_SEC)
/*
 * After this many consecutive activations that each made the next one late, the task ends: it
 * leaves no time to the CPU.
 */
#define OVERLOAD 5000

static struct rtgauge_device device;

static struct {
	struct rtgauge_periodic parameters;
	struct gpio_desc *out;
	struct hrtimer timer;
	struct task_struct *thread;
	s64 expected_ns;
	s64 irq_ns; /* when the timer's handler ran; 0: not yet */
	u64 number;
	u64 activations;
	unsigned int late_in_a_row;
	bool level;
} task;

/* Runs one activation; returns false after the last one. */
static bool activate(s64 irq_ns, s64 thread_ns)
{
	struct rtgauge_sample sample = {
		.number = task.number,
		.time_ns[RTGAUGE_PERIODIC_EXPECTED] = task.expected_ns,
		.time_ns[RTGAUGE_PERIODIC_IRQ] = irq_ns,
		.time_ns[RTGAUGE_PERIODIC_THREAD] = thread_ns,
	};
	u64 late_ns, missed;
	s64 done_ns;

	task.level = !task.level;
	if (task.out)
		gpiod_set_value(task.out, task.level);
	done_ns = ktime_get_ns();
	sample.time_ns[RTGAUGE_PERIODIC_DONE] = done_ns;
	sample.flags = task.level ? RTGAUGE_SAMPLE_HIGH : 0;
	rtgauge_keep(&device, &sample);

	/* As in the user-space probes: a latency L means (L - 1) / period missed activations. */
	late_ns = done_ns > task.expected_ns ? done_ns - task.expected_ns : 1;
	missed = div64_u64(late_ns - 1, task.parameters.period_ns);
	/* Activations after the last one do not count. */
	if (task.parameters.count)
		missed = min(missed, task.parameters.count - 1 - task.number);
	task.number += 1 + missed;
	task.expected_ns += (1 + missed) * task.parameters.period_ns;
	WRITE_ONCE(device.missed, device.missed + missed);
	task.late_in_a_row = missed ? task.late_in_a_row + 1 : 0;
	if (task.late_in_a_row >= OVERLOAD)
		rtgauge_end(&device, RTGAUGE_REASON_OVERLOAD);
	else if (task.parameters.count && task.number >= task.parameters.count)
		rtgauge_end(&device, RTGAUGE_REASON_COUNT);
	return rtgauge_running(&device);
}

static enum hrtimer_restart timer_expired(struct hrtimer *timer)
{
	s64 now_ns = ktime_get_ns();

	if (task.thread) {
		/* Pairs with the acquire in the thread. */
		smp_store_release(&task.irq_ns, now_ns);
		wake_up_process(task.thread);
		return HRTIMER_NORESTART;
	}
	if (!rtgauge_running(&device) || !activate(now_ns, 0))
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(task.expected_ns));
	return HRTIMER_RESTART;
}

static void timer_arm(void *unused)
{
	hrtimer_start(&task.timer, ns_to_ktime(task.expected_ns), HRTIMER_MODE_ABS_PINNED_HARD);
}

/* Waits for the timer; returns the time of its handler, or 0 if the task has to end. */
static s64 thread_wait(void)
{
	s64 irq_ns;

	task.irq_ns = 0;
	timer_arm(NULL);
	for (;;) {
		set_current_state(TASK_IDLE);
		/* Pairs with the release in timer_expired(). */
		irq_ns = smp_load_acquire(&task.irq_ns);
		if (irq_ns || kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return irq_ns;
}

static int thread_run(void *unused)
{
	while (!kthread_should_stop()) {
		s64 irq_ns = thread_wait();

		if (!irq_ns || !activate(irq_ns, ktime_get_ns()))
			break;
	}
	/* The handler must not wake a thread that is gone. */
	hrtimer_cancel(&task.timer);
	/* kthread_stop() needs a thread that still exists. */
	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int check(const struct rtgauge_periodic *wanted)
{
	int error = rtgauge_check_abi(&device, wanted->abi, wanted->reserved,
				      ARRAY_SIZE(wanted->reserved));
	s64 now_ns = ktime_get_ns();

	if (error)
		return error;
	if (wanted->context != RTGAUGE_CONTEXT_IRQ && wanted->context != RTGAUGE_CONTEXT_THREAD)
		return rtgauge_refuse(&device, "context %u: expected irq (%u) or thread (%u)",
				      wanted->context, RTGAUGE_CONTEXT_IRQ, RTGAUGE_CONTEXT_THREAD);
	if (wanted->period_ns < PERIOD_MIN_NS || wanted->period_ns > PERIOD_MAX_NS)
		return rtgauge_refuse(&device, "period %llu ns is not in the range %llu to %llu",
				      wanted->period_ns, PERIOD_MIN_NS, PERIOD_MAX_NS);
	if (wanted->start_ns &&
	    (wanted->start_ns < now_ns || wanted->start_ns - now_ns > START_MOST_NS))
		return rtgauge_refuse(
			&device, "start time %lld is past, or more than a minute after now, %lld",
			wanted->start_ns, now_ns);
	return rtgauge_check_cpu(&device, wanted->cpu)
		       ?: rtgauge_check_priority(&device, wanted->priority,
						 wanted->context == RTGAUGE_CONTEXT_THREAD);
}

static int task_start(struct rtgauge_device *unused, const void *parameters)
{
	const struct rtgauge_periodic *wanted = parameters;
	int error = check(wanted);

	if (error)
		return error;
	memset(&task, 0, sizeof(task));
	task.parameters = *wanted;
	task.out = rtgauge_line_get(&device, &wanted->out, true);
	if (IS_ERR(task.out))
		return PTR_ERR(task.out);
	hrtimer_setup(&task.timer, timer_expired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	task.expected_ns = wanted->start_ns ?: ktime_get_ns() + START_AFTER_NS;
	device.start_ns = task.expected_ns;
	if (wanted->context == RTGAUGE_CONTEXT_THREAD) {
		struct task_struct *thread =
			rtgauge_thread(&device, thread_run, NULL, wanted->cpu, wanted->priority);

		error = PTR_ERR_OR_ZERO(thread);
		if (!error) {
			task.thread = thread;
			wake_up_process(thread);
		}
	} else {
		error = smp_call_function_single(wanted->cpu, timer_arm, NULL, true);
	}
	if (error && task.out)
		gpiod_put(task.out);
	return error;
}

static void task_stop(struct rtgauge_device *unused)
{
	if (task.thread)
		kthread_stop(task.thread);
	else
		hrtimer_cancel(&task.timer);
	if (task.out)
		gpiod_put(task.out);
	task.out = NULL;
}

static const struct rtgauge_ops ops = {
	.owner = THIS_MODULE,
	.name = "rtgauge_periodic",
	.start_command = RTGAUGE_IOC_START_PERIODIC,
	.parameters_size = sizeof(struct rtgauge_periodic),
	.start = task_start,
	.stop = task_stop,
};

static struct rtgauge_device device = {.ops = &ops};

static int __init periodic_init(void)
{
	return rtgauge_register(&device);
}
module_init(periodic_init);

static void __exit periodic_exit(void)
{
	rtgauge_unregister(&device);
}
module_exit(periodic_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The rtgauge developers");
MODULE_DESCRIPTION("rtgauge: the periodic task in kernel space");
MODULE_INFO(rtgauge_abi, RTGAUGE_ABI_TEXT);
