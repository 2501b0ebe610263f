/* SPDX-License-Identifier: GPL-2.0-only */
/* rt.h on Linux. Only rt.h includes it. */
#ifndef RTGAUGE_RT_LINUX_H
#define RTGAUGE_RT_LINUX_H

#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/smp.h>

#define RT_SUFFIX ""

struct rt_timer {
	struct hrtimer timer;
	rt_expired_t expired;
	s64 first_ns;
};

struct rt_thread {
	struct task_struct *task;
	void (*run)(struct rt_thread *thread);
};

static inline void rt_begin(void)
{
}

static inline s64 rt_now_ns(void)
{
	return ktime_get_ns();
}

static inline enum hrtimer_restart rt_timer_expired(struct hrtimer *timer)
{
	struct rt_timer *mine = container_of(timer, struct rt_timer, timer);
	s64 next_ns = 0;

	if (!mine->expired(&next_ns))
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(next_ns));
	return HRTIMER_RESTART;
}

static inline int rt_timer_init(struct rt_timer *timer, rt_expired_t expired, int cpu)
{
	timer->expired = expired;
	hrtimer_setup(&timer->timer, rt_timer_expired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

/* Called by the timer's thread. */
static inline void rt_timer_arm(struct rt_timer *timer, s64 time_ns)
{
	hrtimer_start(&timer->timer, ns_to_ktime(time_ns), HRTIMER_MODE_ABS_PINNED_HARD);
}

static inline void rt_timer_arm_here(void *argument)
{
	struct rt_timer *timer = argument;

	rt_timer_arm(timer, timer->first_ns);
}

/* Called from any CPU. */
static inline int rt_timer_arm_on(struct rt_timer *timer, s64 time_ns, int cpu)
{
	timer->first_ns = time_ns;
	return smp_call_function_single(cpu, rt_timer_arm_here, timer, true);
}

/* The handler does not run after this. */
static inline void rt_timer_cancel(struct rt_timer *timer)
{
	hrtimer_cancel(&timer->timer);
}

static inline void rt_timer_destroy(struct rt_timer *timer)
{
	if (timer->expired)
		rt_timer_cancel(timer);
	timer->expired = NULL;
}

static inline int rt_thread_main(void *argument)
{
	struct rt_thread *thread = argument;

	thread->run(thread);
	return 0;
}

static inline int rt_thread_start(struct rt_thread *thread, struct rtgauge_device *device,
				  void (*run)(struct rt_thread *thread), int cpu,
				  unsigned int priority)
{
	struct task_struct *task = rtgauge_thread(device, rt_thread_main, thread, cpu, priority);

	if (IS_ERR(task))
		return PTR_ERR(task);
	thread->run = run;
	thread->task = task;
	wake_up_process(task);
	return 0;
}

static inline void rt_thread_wake(struct rt_thread *thread)
{
	wake_up_process(thread->task);
}

/* Called in the thread. Waits until *woken is not 0, and returns it; 0: the thread has to stop. */
static inline s64 rt_thread_wait(struct rt_thread *thread, const struct rt_timer *timer,
				 const s64 *woken)
{
	s64 value;

	for (;;) {
		set_current_state(TASK_IDLE);
		/* Pairs with the release of the waking code. */
		value = smp_load_acquire(woken);
		if (value || kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return value;
}

static inline bool rt_thread_should_stop(const struct rt_thread *thread)
{
	return kthread_should_stop();
}

/* The thread's last call. kthread_stop() needs a thread that still exists. */
static inline void rt_thread_end(void)
{
	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
}

static inline void rt_thread_stop(struct rt_thread *thread)
{
	if (thread->task)
		kthread_stop(thread->task);
	thread->task = NULL;
}

struct rt_irq {
	struct irq_work work;
	void (*handler)(void);
};

static inline void rt_irq_entered(struct irq_work *work)
{
	container_of(work, struct rt_irq, work)->handler();
}

static inline int rt_irq_init(struct rt_irq *irq, void (*handler)(void))
{
	irq->work = IRQ_WORK_INIT_HARD(rt_irq_entered);
	irq->handler = handler;
	return 0;
}

/* Called on this CPU, in hard-irq context. */
static inline void rt_irq_raise(struct rt_irq *irq)
{
	irq_work_queue(&irq->work);
}

/* After this, nobody raises it. */
static inline void rt_irq_destroy(struct rt_irq *irq)
{
	if (irq->handler)
		irq_work_sync(&irq->work);
	irq->handler = NULL;
}

#define RT_LINE struct gpio_desc

static inline RT_LINE *rt_line_get(struct rtgauge_device *device, const struct rtgauge_line *line,
				   bool output)
{
	return rtgauge_line_get(device, line, output);
}

static inline void rt_line_drop(RT_LINE *line)
{
	if (!IS_ERR_OR_NULL(line))
		gpiod_put(line);
}

static inline int rt_line_level(RT_LINE *line)
{
	return gpiod_get_value(line);
}

static inline void rt_line_set(RT_LINE *line, int level)
{
	gpiod_set_value(line, level);
}

static inline void rt_line_raise(RT_LINE *line)
{
}

static inline int rt_line_listen(RT_LINE *line, void (*handler)(void))
{
	return 0;
}

static inline bool rt_line_irqs(void)
{
	return true;
}

static inline int rt_line_irq(RT_LINE *line)
{
	return gpiod_to_irq(line);
}

static inline int rt_line_irq_move(int irq, const struct cpumask *cpus)
{
	return irq_set_affinity(irq, cpus);
}

/* Whether a timer can run a handler without a thread. */
static inline bool rt_has_handlers(void)
{
	return true;
}

#endif
