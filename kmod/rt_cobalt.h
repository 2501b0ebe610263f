/* SPDX-License-Identifier: GPL-2.0-only */
/* rt.h on Xenomai's Cobalt core (RTDM). Only rt.h includes it. */
#ifndef RTGAUGE_RT_COBALT_H
#define RTGAUGE_RT_COBALT_H

#include <linux/irq_pipeline.h>
#include <linux/irqdomain.h>
#include <linux/percpu.h>
#include <rtdm/driver.h>

#define RT_SUFFIX "_cobalt"

struct rt_timer {
	rtdm_timer_t timer;
	rt_expired_t expired;
};

struct rt_thread {
	rtdm_task_t task;
	rtdm_event_t woken;
	void (*run)(struct rt_thread *thread);
	bool there;
};

static inline void rt_begin(void)
{
}

static inline s64 rt_now_ns(void)
{
	return rtdm_clock_read_monotonic();
}

static inline void rt_timer_expired(rtdm_timer_t *timer)
{
	struct rt_timer *mine = container_of(timer, struct rt_timer, timer);
	s64 next_ns = 0;

	if (!mine->expired(&next_ns))
		return;
	/* Cobalt refuses a time that has passed; Linux expires it at once. */
	if (rtdm_timer_start_in_handler(timer, next_ns, 0, RTDM_TIMERMODE_ABSOLUTE))
		rtdm_timer_start_in_handler(timer, 1, 0, RTDM_TIMERMODE_RELATIVE);
}

static inline int rt_timer_init(struct rt_timer *timer, rt_expired_t expired, int cpu)
{
	int error = rtdm_timer_init(&timer->timer, rt_timer_expired, "rtgauge");
	spl_t flags;

	if (error)
		return error;
	timer->expired = expired;
	xnlock_get_irqsave(&nklock, flags);
	xntimer_set_affinity(&timer->timer, xnsched_struct(cpu));
	xnlock_put_irqrestore(&nklock, flags);
	return 0;
}

/* Called by the timer's thread. */
static inline void rt_timer_arm(struct rt_timer *timer, s64 time_ns)
{
	if (rtdm_timer_start(&timer->timer, time_ns, 0, RTDM_TIMERMODE_ABSOLUTE))
		rtdm_timer_start(&timer->timer, 1, 0, RTDM_TIMERMODE_RELATIVE);
}

/* Called from any CPU. */
static inline int rt_timer_arm_on(struct rt_timer *timer, s64 time_ns, int cpu)
{
	rt_timer_arm(timer, time_ns);
	return 0;
}

/* The handler does not run after this. */
static inline void rt_timer_cancel(struct rt_timer *timer)
{
	rtdm_timer_stop(&timer->timer);
}

static inline void rt_timer_destroy(struct rt_timer *timer)
{
	if (timer->expired)
		rtdm_timer_destroy(&timer->timer);
	timer->expired = NULL;
}

static inline void rt_thread_main(void *argument)
{
	struct rt_thread *thread = argument;

	thread->run(thread);
}

/* Like rtdm_task_init(), on one CPU. */
static inline int rt_thread_start(struct rt_thread *thread, struct rtgauge_device *device,
				  void (*run)(struct rt_thread *thread), int cpu,
				  unsigned int priority)
{
	struct xnthread_init_attr attributes = {
		.name = "rtgauge-task",
		.personality = &xenomai_personality,
		.affinity = *cpumask_of(cpu),
	};
	struct xnthread_start_attr begin = {.entry = rt_thread_main, .cookie = thread};
	union xnsched_policy_param parameters = {.rt.prio = priority};
	int error;

	thread->run = run;
	rtdm_event_init(&thread->woken, 0);
	error = xnthread_init(&thread->task, &attributes, &xnsched_class_rt, &parameters);
	if (error) {
		rtdm_event_destroy(&thread->woken);
		return error;
	}
	thread->there = true;
	return xnthread_register(&thread->task, "") ?: xnthread_start(&thread->task, &begin);
}

static inline void rt_thread_wake(struct rt_thread *thread)
{
	rtdm_event_signal(&thread->woken);
}

/* Called in the thread. Waits until *woken is not 0, and returns it; 0: the thread has to stop. */
static inline s64 rt_thread_wait(struct rt_thread *thread, const struct rt_timer *timer,
				 const s64 *woken)
{
	for (;;) {
		/* Pairs with the release of the waking code. */
		s64 value = smp_load_acquire(woken);

		if (value || rtdm_task_should_stop())
			return value;
		if (rtdm_event_wait(&thread->woken))
			return 0;
	}
}

static inline bool rt_thread_should_stop(const struct rt_thread *thread)
{
	return rtdm_task_should_stop();
}

/* The thread's last call. */
static inline void rt_thread_end(void)
{
}

static inline void rt_thread_stop(struct rt_thread *thread)
{
	if (!thread->there)
		return;
	rtdm_task_destroy(&thread->task);
	rtdm_event_destroy(&thread->woken);
	thread->there = false;
}

/* An interrupt of the pipeline (Dovetail), which Cobalt handles like a device's. */
struct rt_irq {
	unsigned int number;
	struct rt_irq *__percpu *mine;
	void (*handler)(void);
};

static inline irqreturn_t rt_irq_entered(int number, void *mine)
{
	struct rt_irq *irq = *(struct rt_irq **)mine;

	irq->handler();
	return IRQ_HANDLED;
}

static inline int rt_irq_init(struct rt_irq *irq, void (*handler)(void))
{
	int cpu, error = -ENOMEM;

	irq->handler = handler;
	irq->mine = alloc_percpu(struct rt_irq *);
	if (!irq->mine)
		return error;
	for_each_possible_cpu(cpu)
		*per_cpu_ptr(irq->mine, cpu) = irq;
	irq->number = irq_create_direct_mapping(synthetic_irq_domain);
	if (irq->number)
		error = __request_percpu_irq(irq->number, rt_irq_entered, IRQF_OOB,
					     "rtgauge_response", irq->mine);
	if (!error)
		return 0;
	if (irq->number)
		irq_dispose_mapping(irq->number);
	free_percpu(irq->mine);
	irq->mine = NULL;
	return error;
}

/* Called on this CPU, in Linux's hard-irq context. */
static inline void rt_irq_raise(struct rt_irq *irq)
{
	irq_inject_pipeline(irq->number);
}

/* After this, nobody raises it. */
static inline void rt_irq_destroy(struct rt_irq *irq)
{
	if (!irq->mine)
		return;
	free_percpu_irq(irq->number, irq->mine);
	irq_dispose_mapping(irq->number);
	free_percpu(irq->mine);
	irq->mine = NULL;
}

/* Whether a timer can run a handler without a thread. */
static inline bool rt_has_handlers(void)
{
	return true;
}

#endif
