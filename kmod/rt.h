/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task in the kernel needs of what it runs on: a clock, a timer on one CPU, a thread, an
 * interrupt that it raises itself, lines. Linux has them, and, where RTGAUGE_COBALT or RTGAUGE_RTAI
 * is defined, Xenomai's Cobalt core (RTDM) or RTAI's scheduler beside it (no interrupt, no line),
 * whose threads Linux does not delay. All times are on CLOCK_MONOTONIC.
 */
#ifndef RTGAUGE_RT_H
#define RTGAUGE_RT_H

#include <linux/err.h>
#include <linux/interrupt.h>

#include "compat.h"
#include "core.h"

/* Called on the timer's CPU; true: again at *next_ns. */
typedef bool (*rt_expired_t)(s64 *next_ns);

#ifdef RTGAUGE_COBALT
#include <linux/irq_pipeline.h>
#include <linux/irqdomain.h>
#include <linux/percpu.h>
#include <rtdm/driver.h>

#include "wire_rtdm.h"

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

/* By the timer's thread. */
static inline void rt_timer_arm(struct rt_timer *timer, s64 time_ns)
{
	if (rtdm_timer_start(&timer->timer, time_ns, 0, RTDM_TIMERMODE_ABSOLUTE))
		rtdm_timer_start(&timer->timer, 1, 0, RTDM_TIMERMODE_RELATIVE);
}

/* From any CPU. */
static inline int rt_timer_arm_on(struct rt_timer *timer, s64 time_ns, int cpu)
{
	rt_timer_arm(timer, time_ns);
	return 0;
}

/* Its handler does not run any more. */
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

/* As rtdm_task_init(), on one CPU. */
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

/* In the thread: until *woken is not 0, which it returns, or until it is to stop: 0. */
static inline s64 rt_thread_wait(struct rt_thread *thread, const struct rt_timer *timer,
				 const s64 *woken)
{
	for (;;) {
		/* Pairs with the release of whoever wakes it. */
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

/* The last that the thread does. */
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

/* An interrupt of the pipeline (Dovetail), which Cobalt takes as it takes that of a device. */
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
	for_each_possible_cpu(cpu) * per_cpu_ptr(irq->mine, cpu) = irq;
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

/* On this CPU, in hard-irq context of Linux. */
static inline void rt_irq_raise(struct rt_irq *irq)
{
	irq_inject_pipeline(irq->number);
}

/* Nobody raises it any more. */
static inline void rt_irq_destroy(struct rt_irq *irq)
{
	if (!irq->mine)
		return;
	free_percpu_irq(irq->number, irq->mine);
	irq_dispose_mapping(irq->number);
	free_percpu(irq->mine);
	irq->mine = NULL;
}

/*
 * Linux's GPIO lines cannot be used while Linux itself is interrupted: a line is one of the wire's,
 * whose interrupts Cobalt takes, on the CPU of the edge.
 */
#define RT_LINE struct pin

static const struct rtgauge_wire_pins *rt_wire; /* as long as there is a line */

static inline RT_LINE *rt_line_get(struct rtgauge_device *device, const struct rtgauge_line *line,
				   bool output)
{
	RT_LINE *mine;

	if (!line->chip[0])
		return NULL;
	if (strncmp(line->chip, WIRE_CHIP, sizeof(line->chip)) || line->flags) {
		rtgauge_refuse(device, "on Cobalt a line is one of " WIRE_CHIP ", without flags");
		return ERR_PTR(-EINVAL);
	}
	rt_wire = symbol_get(rtgauge_wire_pins);
	if (!rt_wire) {
		rtgauge_refuse(device, "rtgauge_wire_cobalt is not loaded");
		return ERR_PTR(-EINVAL);
	}
	mine = rt_wire->take(line->offset, output);
	if (!IS_ERR(mine))
		return mine;
	symbol_put(rtgauge_wire_pins);
	if (PTR_ERR(mine) == -EINVAL)
		rtgauge_refuse(device, "the wire has no line %u", line->offset);
	return mine;
}

static inline void rt_line_drop(RT_LINE *line)
{
	if (IS_ERR_OR_NULL(line))
		return;
	rt_wire->give(line);
	symbol_put(rtgauge_wire_pins);
}

static inline int rt_line_level(RT_LINE *line)
{
	return rt_wire->level(line);
}

static inline void rt_line_set(RT_LINE *line, int level)
{
	rt_wire->put(line, level);
}

/* After it was set, and its time taken: the interrupt at the other end. */
static inline void rt_line_raise(RT_LINE *line)
{
	rt_wire->raise(line);
}

/* The handler runs at each edge, in hard-irq context, or NULL: not any more. */
static inline int rt_line_listen(RT_LINE *line, void (*handler)(void))
{
	if (!IS_ERR_OR_NULL(line))
		rt_wire->listen(line, handler);
	return 0;
}

/* Whether the interrupt of a line is one of Linux's, which is requested and moved as such. */
static inline bool rt_line_irqs(void)
{
	return false;
}

static inline int rt_line_irq(RT_LINE *line)
{
	return -ENXIO;
}

static inline int rt_line_irq_move(int irq, const struct cpumask *cpus)
{
	return -ENXIO;
}

/* Whether a timer can run a handler, without a thread. */
static inline bool rt_has_handlers(void)
{
	return true;
}

#elif defined(RTGAUGE_RTAI)
#include <linux/delay.h>
#include <linux/timekeeping.h>

#include <rtai_sched.h>

#define RT_SUFFIX "_rtai"
#define RT_STACK 8192
#define RT_LOWEST 99 /* of the priorities that are used: 0 is RTAI's highest */

/* RTAI has timers for its tasks alone: this one only keeps the time until which the task sleeps. */
struct rt_timer {
	s64 time_ns;
};

struct rt_thread {
	RT_TASK task;
	void (*run)(struct rt_thread *thread);
	bool there, stop, ended;
};

/*
 * The processor's counter, which RTAI counts in, from a reading of CLOCK_MONOTONIC on: Linux's own
 * clock may just be written when the task interrupts it.
 */
static struct {
	s64 begun_ns;
	RTIME begun;
} rt_clock;

static inline void rt_begin(void)
{
	rt_clock.begun_ns = ktime_get_ns();
	rt_clock.begun = rtai_rdtsc();
}

static inline s64 rt_now_ns(void)
{
	return rt_clock.begun_ns + count2nano(rtai_rdtsc() - rt_clock.begun);
}

static inline int rt_timer_init(struct rt_timer *timer, rt_expired_t expired, int cpu)
{
	return 0;
}

static inline void rt_timer_arm(struct rt_timer *timer, s64 time_ns)
{
	timer->time_ns = time_ns;
}

/* A handler without a task. */
static inline int rt_timer_arm_on(struct rt_timer *timer, s64 time_ns, int cpu)
{
	return -EOPNOTSUPP;
}

static inline void rt_timer_cancel(struct rt_timer *timer)
{
}

static inline void rt_timer_destroy(struct rt_timer *timer)
{
}

static inline void rt_thread_main(long argument)
{
	struct rt_thread *thread = (struct rt_thread *)argument;

	thread->run(thread);
	/* Pairs with the acquire of who stops it. */
	smp_store_release(&thread->ended, true);
	rt_task_suspend(rt_whoami());
}

static inline int rt_thread_start(struct rt_thread *thread, struct rtgauge_device *device,
				  void (*run)(struct rt_thread *thread), int cpu,
				  unsigned int priority)
{
	int error = rt_task_init_cpuid(&thread->task, rt_thread_main, (long)thread, RT_STACK,
				       RT_LOWEST - priority, 0, NULL, cpu);

	if (error)
		return error;
	thread->run = run;
	thread->there = true;
	return rt_task_resume(&thread->task) ? -EINVAL : 0;
}

static inline void rt_thread_wake(struct rt_thread *thread)
{
}

/* In the thread: until the timer's time; 0: it is to stop. There is no handler that sets *woken. */
static inline s64 rt_thread_wait(struct rt_thread *thread, const struct rt_timer *timer,
				 const s64 *woken)
{
	if (!READ_ONCE(thread->stop))
		rt_sleep_until(rt_clock.begun + nano2count(timer->time_ns - rt_clock.begun_ns));
	return !READ_ONCE(thread->stop);
}

static inline bool rt_thread_should_stop(const struct rt_thread *thread)
{
	return READ_ONCE(thread->stop);
}

/* The last that the thread does. */
static inline void rt_thread_end(void)
{
}

/* By Linux. It sleeps, or is about to: then it is woken at the next try. */
static inline void rt_thread_stop(struct rt_thread *thread)
{
	if (!thread->there)
		return;
	WRITE_ONCE(thread->stop, true);
	/* Pairs with the release at its end. */
	while (!smp_load_acquire(&thread->ended)) {
		rt_task_wakeup_sleeping(&thread->task);
		usleep_range(1000, 2000);
	}
	rt_task_delete(&thread->task);
	thread->there = false;
}

/* There are no lines that it could use. */
#define RT_LINE struct rtgauge_line

static inline RT_LINE *rt_line_get(struct rtgauge_device *device, const struct rtgauge_line *line,
				   bool output)
{
	if (!line->chip[0])
		return NULL;
	rtgauge_refuse(device, "RTAI cannot use Linux's GPIO lines");
	return ERR_PTR(-EINVAL);
}

static inline void rt_line_drop(RT_LINE *line)
{
}

static inline void rt_line_set(RT_LINE *line, int level)
{
}

static inline void rt_line_raise(RT_LINE *line)
{
}

static inline bool rt_has_handlers(void)
{
	return false;
}

#else
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

/* By the timer's thread. */
static inline void rt_timer_arm(struct rt_timer *timer, s64 time_ns)
{
	hrtimer_start(&timer->timer, ns_to_ktime(time_ns), HRTIMER_MODE_ABS_PINNED_HARD);
}

static inline void rt_timer_arm_here(void *argument)
{
	struct rt_timer *timer = argument;

	rt_timer_arm(timer, timer->first_ns);
}

/* From any CPU. */
static inline int rt_timer_arm_on(struct rt_timer *timer, s64 time_ns, int cpu)
{
	timer->first_ns = time_ns;
	return smp_call_function_single(cpu, rt_timer_arm_here, timer, true);
}

/* Its handler does not run any more. */
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

/* In the thread: until *woken is not 0, which it returns, or until it is to stop: 0. */
static inline s64 rt_thread_wait(struct rt_thread *thread, const struct rt_timer *timer,
				 const s64 *woken)
{
	s64 value;

	for (;;) {
		set_current_state(TASK_IDLE);
		/* Pairs with the release of whoever wakes it. */
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

/* The last that the thread does: kthread_stop() needs a thread that still exists. */
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

/* On this CPU, in hard-irq context. */
static inline void rt_irq_raise(struct rt_irq *irq)
{
	irq_work_queue(&irq->work);
}

/* Nobody raises it any more. */
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

/* Whether a timer can run a handler, without a thread. */
static inline bool rt_has_handlers(void)
{
	return true;
}

#endif

#endif
