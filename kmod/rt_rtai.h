/* SPDX-License-Identifier: GPL-2.0-only */
/* rt.h on RTAI's scheduler, without an interrupt that a task raises, and without lines. Only
 * rt.h includes it. */
#ifndef RTGAUGE_RT_RTAI_H
#define RTGAUGE_RT_RTAI_H

#include <linux/delay.h>
#include <linux/timekeeping.h>

#include <rtai_sched.h>

#define RT_SUFFIX "_rtai"
#define RT_STACK 8192
#define RT_LOWEST 99 /* among the priorities in use; 0 is RTAI's highest */

/* RTAI has timers only for its tasks, so this timer only keeps the time until which the task
   sleeps. */
struct rt_timer {
	s64 time_ns;
};

struct rt_thread {
	RT_TASK task;
	void (*run)(struct rt_thread *thread);
	bool there, stop, ended;
};

/*
 * The processor's counter, in which RTAI counts, from a reading of CLOCK_MONOTONIC on. Linux's
 * clock cannot be used, because Linux may be writing it when the task interrupts it.
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
	/* Pairs with the acquire of the code that stops it. */
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

/* Called in the thread. Waits until the timer's time; 0: the thread has to stop. No handler sets
 * *woken. */
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

/* The thread's last call. */
static inline void rt_thread_end(void)
{
}

/* Called by Linux. The task is asleep or about to sleep; in the second case, the next try wakes
   it. */
static inline void rt_thread_stop(struct rt_thread *thread)
{
	if (!thread->there)
		return;
	WRITE_ONCE(thread->stop, true);
	/* Pairs with the release at the task's end. */
	while (!smp_load_acquire(&thread->ended)) {
		rt_task_wakeup_sleeping(&thread->task);
		usleep_range(1000, 2000);
	}
	rt_task_delete(&thread->task);
	thread->there = false;
}

/* RTAI has no lines that it could use. */
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

#endif
