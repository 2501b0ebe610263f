// SPDX-License-Identifier: GPL-2.0-only
/*
 * The response task in kernel space (Brown and Martin 2010, sec. 3.4; Adam et al. 2021,
 * algorithm A1). An input's interrupt sets an output to the input's level, from the top half,
 * from a threaded handler or from a FIFO kernel thread. Each step is time-stamped. Without a
 * line, a Linux timer raises an interrupt of the module's own, and the answer is only a time
 * stamp. Also runs on Cobalt (rt.h).
 */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/smp.h>

#include "compat.h"
#include "core.h"
#include "rt.h"

/* Time stamps of top halves that the thread has not seen yet. */
#define SLOTS 16
#define INTERVAL_MIN_NS 10000ULL
#define INTERVAL_MAX_NS (60ULL * NSEC_PER_SEC)
#define START_AFTER_NS (10 * NSEC_PER_MSEC)

static struct rtgauge_device device;

static struct {
	struct rtgauge_response parameters;
	RT_LINE *in;
	RT_LINE *out;
	struct rt_thread thread;
	struct hrtimer stimuli; /* without a line */
	struct rt_irq stimulus;
	bool stimulating;
	s64 stimulus_ns;
	u64 random;
	int irq;
	cpumask_var_t affinity_before;
	bool moved;
	struct edge {
		s64 stimulus_ns; /* 0: unknown */
		s64 irq_ns;
	} edge[SLOTS];
	s64 woken;    /* the thread has been woken, and has not looked yet */
	u64 arrived;  /* edges that the top half saw */
	u64 answered; /* how many of these were answered or missed */
	u64 number;
} task;

static void answer(const struct edge *edge, s64 thread_ns)
{
	struct rtgauge_sample sample = {
		.number = task.number,
		.time_ns[RTGAUGE_RESPONSE_IRQ] = edge->irq_ns,
		.time_ns[RTGAUGE_RESPONSE_THREAD] = thread_ns,
		.time_ns[RTGAUGE_RESPONSE_STIMULUS] = edge->stimulus_ns,
		.flags = thread_ns ? 0 : RTGAUGE_SAMPLE_HARD,
	};
	int level;

	if (!rtgauge_running(&device))
		return;
	level = task.in ? rt_line_level(task.in) : !(task.number & 1);
	if (task.out)
		rt_line_set(task.out, level);
	sample.time_ns[RTGAUGE_RESPONSE_DONE] = rt_now_ns();
	sample.flags |= level ? RTGAUGE_SAMPLE_HIGH : 0;
	rtgauge_keep(&device, &sample);
	if (task.out)
		rt_line_raise(task.out);
	task.number++;
	if (task.parameters.count && task.number >= task.parameters.count)
		rtgauge_end(&device, RTGAUGE_REASON_COUNT);
}

/*
 * The whole response in one handler. PREEMPT_RT may run the handler in a thread; its time stamp
 * is then the thread's.
 */
static irqreturn_t answer_in_handler(int irq, void *unused)
{
	s64 now_ns = rt_now_ns();

	if (in_hardirq())
		answer(&(struct edge){.irq_ns = now_ns}, 0);
	else
		answer(&(struct edge){}, now_ns);
	return IRQ_HANDLED;
}

static void arrive(void)
{
	task.edge[task.arrived % SLOTS] = (struct edge){task.stimulus_ns, rt_now_ns()};
	/* Pairs with the acquire in take_edges(). */
	smp_store_release(&task.arrived, task.arrived + 1);
}

/*
 * Returns the number of edges up to now. The caller answers the last one. Earlier ones that were
 * not answered count as missed.
 */
static u64 take_edges(void)
{
	/* Pairs with the release in arrive(). */
	u64 arrived = smp_load_acquire(&task.arrived);

	if (arrived > task.answered) {
		u64 missed = arrived - task.answered - 1;

		WRITE_ONCE(device.missed, device.missed + missed);
		task.number += missed;
		task.answered = arrived;
	}
	return arrived;
}

static irqreturn_t arrive_for_handler(int irq, void *unused)
{
	arrive();
	return IRQ_WAKE_THREAD;
}

static irqreturn_t answer_in_threaded_handler(int irq, void *unused)
{
	s64 now_ns = rt_now_ns();
	u64 before = task.answered;
	u64 arrived = take_edges();

	if (arrived != before)
		answer(&task.edge[(arrived - 1) % SLOTS], now_ns);
	return IRQ_HANDLED;
}

static void wake_thread(void)
{
	arrive();
	/* Pairs with the acquire of the thread's wait. */
	smp_store_release(&task.woken, 1);
	rt_thread_wake(&task.thread);
}

static irqreturn_t arrive_for_thread(int irq, void *unused)
{
	wake_thread();
	return IRQ_HANDLED;
}

static void thread_run(struct rt_thread *thread)
{
	while (!rt_thread_should_stop(thread) && rt_thread_wait(thread, NULL, &task.woken)) {
		u64 before = task.answered;
		s64 now_ns = rt_now_ns();
		u64 arrived;

		/* A full barrier: an edge after this point wakes the thread again. */
		xchg(&task.woken, 0);
		arrived = take_edges();
		if (arrived != before)
			answer(&task.edge[(arrived - 1) % SLOTS], now_ns);
	}
	rt_thread_end();
}

/*
 * The interrupt that the module raises itself, and on Cobalt a line's interrupt, whose stimulus
 * is unknown here.
 */
static void own_interrupt(void)
{
	if (task.parameters.context == RTGAUGE_CONTEXT_THREAD)
		wake_thread();
	else
		answer(&(struct edge){task.stimulus_ns, rt_now_ns()}, 0);
}

/* xorshift64 (Marsaglia 2003) */
static u64 draw_interval(void)
{
	u64 min_ns = task.parameters.interval_min_ns;

	task.random ^= task.random << 13;
	task.random ^= task.random >> 7;
	task.random ^= task.random << 17;
	return min_ns + task.random % (task.parameters.interval_max_ns - min_ns + 1);
}

static enum hrtimer_restart stimulate(struct hrtimer *timer)
{
	if (!rtgauge_running(&device))
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(ktime_get_ns() + draw_interval()));
	task.stimulus_ns = rt_now_ns();
	rt_irq_raise(&task.stimulus);
	return HRTIMER_RESTART;
}

static void stimuli_begin_here(void *unused)
{
	hrtimer_start(&task.stimuli, ns_to_ktime(ktime_get_ns() + START_AFTER_NS),
		      HRTIMER_MODE_ABS_PINNED_HARD);
}

static int stimuli_begin(void)
{
	int error = rt_irq_init(&task.stimulus, own_interrupt);

	if (error)
		return error;
	task.random = task.parameters.seed ?: 1;
	hrtimer_setup(&task.stimuli, stimulate, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	task.stimulating = true;
	return smp_call_function_single(task.parameters.irq_cpu, stimuli_begin_here, NULL, true);
}

static void stimuli_end(void)
{
	if (!task.stimulating)
		return;
	hrtimer_cancel(&task.stimuli);
	rt_irq_destroy(&task.stimulus);
	task.stimulating = false;
}

static int irq_take(void)
{
	unsigned long flags = IRQF_TRIGGER_RISING | IRQF_TRIGGER_FALLING;
	const char *name = device.ops->name;

	switch (task.parameters.context) {
	case RTGAUGE_CONTEXT_IRQ:
		return request_irq(task.irq, answer_in_handler, flags | IRQF_NO_THREAD, name,
				   &task);
	case RTGAUGE_CONTEXT_IRQ_DEFAULT:
		return request_irq(task.irq, answer_in_handler, flags, name, &task);
	case RTGAUGE_CONTEXT_IRQ_THREAD:
		/* With IRQF_ONESHOT, the first handler is a top half on PREEMPT_RT too. */
		return request_threaded_irq(task.irq, arrive_for_handler,
					    answer_in_threaded_handler, flags | IRQF_ONESHOT, name,
					    &task);
	default:
		return request_irq(task.irq, arrive_for_thread, flags | IRQF_NO_THREAD, name,
				   &task);
	}
}

/* Moves the interrupt to a CPU; irq_back() restores the affinity. */
static int irq_move(int cpu)
{
	const struct cpumask *now = irq_get_affinity_mask(task.irq);
	int error;

	if (!now)
		return -ENXIO;
	cpumask_copy(task.affinity_before, now);
	error = rt_line_irq_move(task.irq, cpumask_of(cpu));
	task.moved = !error;
	return error;
}

static void irq_back(void)
{
	/* This fails if these CPUs went offline; the affinity then stays. */
	if (task.moved)
		rt_line_irq_move(task.irq, task.affinity_before);
	task.moved = false;
}

static int check_line(const struct rtgauge_response *wanted)
{
	if (wanted->interval_min_ns || wanted->interval_max_ns || wanted->seed)
		return rtgauge_refuse(&device, "with a line, stimuli come from there: no interval");
	if (rt_line_irqs())
		return 0;
	if (wanted->context != RTGAUGE_CONTEXT_IRQ && wanted->context != RTGAUGE_CONTEXT_THREAD)
		return rtgauge_refuse(&device, "context %u: on Cobalt irq (%u) or thread (%u)",
				      wanted->context, RTGAUGE_CONTEXT_IRQ, RTGAUGE_CONTEXT_THREAD);
	if (wanted->irq_cpu != RTGAUGE_ANY_CPU)
		return rtgauge_refuse(&device,
				      "irq_cpu: on Cobalt the interrupt is on the CPU of the edge");
	return 0;
}

static int check_stimuli(const struct rtgauge_response *wanted)
{
	if (!wanted->interval_max_ns)
		return rtgauge_refuse(&device, "no input line given");
	if (wanted->out.chip[0])
		return rtgauge_refuse(&device, "without an input line there is no output line");
	if (wanted->interval_min_ns < INTERVAL_MIN_NS ||
	    wanted->interval_max_ns > INTERVAL_MAX_NS ||
	    wanted->interval_min_ns > wanted->interval_max_ns)
		return rtgauge_refuse(&device, "intervals of %llu to %llu ns: from %llu to %llu",
				      wanted->interval_min_ns, wanted->interval_max_ns,
				      INTERVAL_MIN_NS, INTERVAL_MAX_NS);
	if (wanted->context != RTGAUGE_CONTEXT_IRQ && wanted->context != RTGAUGE_CONTEXT_THREAD)
		return rtgauge_refuse(&device, "context %u: without a line irq (%u) or thread (%u)",
				      wanted->context, RTGAUGE_CONTEXT_IRQ, RTGAUGE_CONTEXT_THREAD);
	if (wanted->irq_cpu == RTGAUGE_ANY_CPU)
		return rtgauge_refuse(&device, "without a line the interrupt needs a CPU");
	return 0;
}

static int check(const struct rtgauge_response *wanted)
{
	bool thread = wanted->context == RTGAUGE_CONTEXT_THREAD;
	int error = rtgauge_check_abi(&device, wanted->abi, wanted->reserved,
				      ARRAY_SIZE(wanted->reserved));

	if (error)
		return error;
	if (wanted->reserved0)
		return rtgauge_refuse(&device, "reserved words must be 0");
	if (wanted->context > RTGAUGE_CONTEXT_IRQ_DEFAULT)
		return rtgauge_refuse(&device, "context %u is not in the range 0 to %u",
				      wanted->context, RTGAUGE_CONTEXT_IRQ_DEFAULT);
	error = wanted->in.chip[0] ? check_line(wanted) : check_stimuli(wanted);
	if (error)
		return error;
	if (!thread && wanted->cpu != RTGAUGE_ANY_CPU)
		return rtgauge_refuse(
			&device, "CPU %d: only a kernel thread has a CPU, an interrupt has irq_cpu",
			wanted->cpu);
	if (thread)
		error = rtgauge_check_cpu(&device, wanted->cpu);
	if (!error && wanted->irq_cpu != RTGAUGE_ANY_CPU)
		error = rtgauge_check_cpu(&device, wanted->irq_cpu);
	return error ?: rtgauge_check_priority(&device, wanted->priority, thread);
}

static void task_stop(struct rtgauge_device *unused)
{
	stimuli_end();
	rt_line_listen(task.in, NULL);
	if (task.irq > 0) {
		/* free_irq() waits for running handlers, including the threaded one. */
		free_irq(task.irq, &task);
		irq_back();
	}
	rt_thread_stop(&task.thread);
	rt_line_drop(task.out);
	rt_line_drop(task.in);
	free_cpumask_var(task.affinity_before);
	memset(&task, 0, sizeof(task));
}

static int lines_take(void)
{
	task.in = rt_line_get(&device, &task.parameters.in, false);
	if (IS_ERR(task.in))
		return PTR_ERR(task.in);
	task.out = rt_line_get(&device, &task.parameters.out, true);
	return PTR_ERR_OR_ZERO(task.out);
}

static int thread_take(void)
{
	if (task.parameters.context != RTGAUGE_CONTEXT_THREAD)
		return 0;
	return rt_thread_start(&task.thread, &device, thread_run, task.parameters.cpu,
			       task.parameters.priority);
}

static int interrupt_take(void)
{
	int irq, error;

	if (!rt_line_irqs())
		return rt_line_listen(task.in, own_interrupt);
	irq = rt_line_irq(task.in);
	if (irq <= 0)
		return rtgauge_refuse(&device, "line %u of chip '%s' has no interrupt: %pe",
				      task.parameters.in.offset, task.parameters.in.chip,
				      ERR_PTR(irq));
	task.irq = irq;
	error = irq_take();
	if (error) {
		task.irq = 0;
		return rtgauge_refuse(&device, "cannot request interrupt %d: %pe", irq,
				      ERR_PTR(error));
	}
	device.irq = irq;
	if (task.parameters.irq_cpu == RTGAUGE_ANY_CPU)
		return 0;
	error = irq_move(task.parameters.irq_cpu);
	return error ? rtgauge_refuse(&device, "cannot move interrupt %d to CPU %d: %pe", irq,
				      task.parameters.irq_cpu, ERR_PTR(error))
		     : 0;
}

static int task_start(struct rtgauge_device *unused, const void *parameters)
{
	const struct rtgauge_response *wanted = parameters;
	int error = check(wanted);

	if (error)
		return error;
	task.parameters = *wanted;
	if (!zalloc_cpumask_var(&task.affinity_before, GFP_KERNEL))
		return -ENOMEM;
	if (wanted->in.chip[0])
		error = lines_take() ?: thread_take() ?: interrupt_take();
	else
		error = thread_take() ?: stimuli_begin();
	if (error)
		task_stop(&device);
	return error;
}

static const struct rtgauge_ops ops = {
	.owner = THIS_MODULE,
	.name = "rtgauge_response" RT_SUFFIX,
	.start_command = RTGAUGE_IOC_START_RESPONSE,
	.parameters_size = sizeof(struct rtgauge_response),
	.start = task_start,
	.stop = task_stop,
};

static struct rtgauge_device device = {.ops = &ops};

static int __init response_init(void)
{
	return rtgauge_register(&device);
}
module_init(response_init);

static void __exit response_exit(void)
{
	rtgauge_unregister(&device);
}
module_exit(response_exit);

MODULE_LICENSE("GPL");
MODULE_VERSION(RTGAUGE_KMOD_VERSION);
MODULE_AUTHOR("The rtgauge developers");
MODULE_DESCRIPTION("rtgauge: the response task in kernel space");
MODULE_INFO(rtgauge_abi, RTGAUGE_ABI_TEXT);
