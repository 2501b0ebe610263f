// SPDX-License-Identifier: GPL-2.0-only
/*
 * The periodic task in kernel space (Brown and Martin 2010, sec. 3.5; Adam et al. 2021,
 * algorithm A2). A high-resolution timer in hard-irq context, or a FIFO kernel thread that it
 * wakes, toggles a line or only takes time stamps. Also runs on Cobalt, and as a task of RTAI
 * (rt.h).
 */
#include <linux/err.h>
#include <linux/module.h>

#include "core.h"
#include "rt.h"

#define PERIOD_MIN_NS 10000ULL
#define PERIOD_MAX_NS (10ULL * NSEC_PER_SEC)
#define START_AFTER_NS (10 * NSEC_PER_MSEC)
#define START_MOST_NS (60ULL * NSEC_PER_SEC)
/*
 * After this many consecutive activations that each delayed the next one, the task ends, because
 * it leaves no time on the CPU.
 */
#define OVERLOAD 5000

static struct rtgauge_device device;

static struct {
	struct rtgauge_periodic parameters;
	RT_LINE *out;
	struct rt_timer timer;
	struct rt_thread thread;
	s64 expected_ns;
	s64 irq_ns; /* when the timer's handler ran; 0: not yet */
	u64 number;
	unsigned int late_in_a_row;
	bool level;
} task;

/* Runs one activation. Returns false after the last one. */
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
		rt_line_set(task.out, task.level);
	done_ns = rt_now_ns();
	sample.time_ns[RTGAUGE_PERIODIC_DONE] = done_ns;
	sample.flags = task.level ? RTGAUGE_SAMPLE_HIGH : 0;
	rtgauge_keep(&device, &sample);
	if (task.out)
		rt_line_raise(task.out);

	/* As in the user-space probes, a latency L means (L - 1) / period missed activations. */
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

static bool timer_expired(s64 *next_ns)
{
	s64 now_ns = rt_now_ns();

	if (task.parameters.context == RTGAUGE_CONTEXT_THREAD) {
		/* Pairs with the acquire in the thread. */
		smp_store_release(&task.irq_ns, now_ns);
		rt_thread_wake(&task.thread);
		return false;
	}
	if (!rtgauge_running(&device) || !activate(now_ns, 0))
		return false;
	*next_ns = task.expected_ns;
	return true;
}

/* Waits for the timer. Returns 0 if the task has to end. */
static s64 thread_wait(struct rt_thread *thread)
{
	task.irq_ns = 0;
	rt_timer_arm(&task.timer, task.expected_ns);
	return rt_thread_wait(thread, &task.timer, &task.irq_ns);
}

static void thread_run(struct rt_thread *thread)
{
	while (!rt_thread_should_stop(thread)) {
		if (!thread_wait(thread) || !activate(task.irq_ns, rt_now_ns()))
			break;
	}
	/* The handler must not wake a thread that is gone. */
	rt_timer_cancel(&task.timer);
	rt_thread_end();
}

static int check(const struct rtgauge_periodic *wanted)
{
	int error = rtgauge_check_abi(&device, wanted->abi, wanted->reserved,
				      ARRAY_SIZE(wanted->reserved));
	s64 now_ns = rt_now_ns();

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
	if (!rt_has_handlers() && wanted->context == RTGAUGE_CONTEXT_IRQ)
		return rtgauge_refuse(&device, "context irq: RTAI's timers only wake tasks");
	return rtgauge_check_cpu(&device, wanted->cpu)
		       ?: rtgauge_check_priority(&device, wanted->priority,
						 wanted->context == RTGAUGE_CONTEXT_THREAD);
}

static void task_stop(struct rtgauge_device *unused)
{
	rt_thread_stop(&task.thread);
	rt_timer_destroy(&task.timer);
	rt_line_drop(task.out);
	task.out = NULL;
}

static int task_start(struct rtgauge_device *unused, const void *parameters)
{
	const struct rtgauge_periodic *wanted = parameters;
	int error;

	rt_begin();
	error = check(wanted);
	if (error)
		return error;
	memset(&task, 0, sizeof(task));
	task.parameters = *wanted;
	task.out = rt_line_get(&device, &wanted->out, true);
	if (IS_ERR(task.out))
		return PTR_ERR(task.out);
	task.expected_ns = wanted->start_ns ?: rt_now_ns() + START_AFTER_NS;
	device.start_ns = task.expected_ns;
	error = rt_timer_init(&task.timer, timer_expired, wanted->cpu);
	if (!error && wanted->context == RTGAUGE_CONTEXT_THREAD)
		error = rt_thread_start(&task.thread, &device, thread_run, wanted->cpu,
					wanted->priority);
	else if (!error)
		error = rt_timer_arm_on(&task.timer, task.expected_ns, wanted->cpu);
	if (error)
		task_stop(&device);
	return error;
}

static const struct rtgauge_ops ops = {
	.owner = THIS_MODULE,
	.name = "rtgauge_periodic" RT_SUFFIX,
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
MODULE_VERSION(RTGAUGE_KMOD_VERSION);
MODULE_AUTHOR("The rtgauge developers");
MODULE_DESCRIPTION("rtgauge: the periodic task in kernel space");
MODULE_INFO(rtgauge_abi, RTGAUGE_ABI_TEXT);
