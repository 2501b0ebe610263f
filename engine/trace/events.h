/* SPDX-License-Identifier: MIT */
/*
 * The kernel events that an instance of tracefs records. A list names them, separated by commas.
 * `sched/sched_switch` is an event, `irq_vectors/` followed by `*_entry` stands for all events of that
 * group with this ending, and `irq` is a whole group.
 */
#ifndef RTGAUGE_TRACE_EVENTS_H
#define RTGAUGE_TRACE_EVENTS_H

#include <stdbool.h>

#define TRACE_EVENTS_MAX 256

/*
 * Events that show how interrupts, softirqs, timers, other tasks and idle states affect a wake-up. preemptirq
 * is left out, because it has an event for every section with interrupts or preemption off. Events at each
 * wake-up that add nothing are left out too: sched_wakeup of a thread that its own CPU wakes, and the timer
 * within the interrupt.
 */
#define TRACE_USUAL_EVENTS                                                                                   \
	"irq/irq_handler_entry,irq/irq_handler_exit,irq/softirq_entry,irq/softirq_exit,irq/softirq_raise,"   \
	"irq_vectors/*_entry,irq_vectors/*_exit,"                                                            \
	"sched/sched_switch,sched/sched_waking,sched/sched_wakeup_new,"                                      \
	"sched/sched_migrate_task,sched/sched_pi_setprio,timer/timer_expire_entry,timer/timer_expire_exit,"  \
	"timer/tick_stop,ipi,nmi/nmi_handler,signal/signal_generate,"                                        \
	"workqueue/workqueue_execute_start,workqueue/workqueue_execute_end,"                                 \
	"lock/contention_begin,lock/contention_end,power/cpu_idle,csd,osnoise"

/* Finds "group/name" of each listed event that this kernel has, without duplicates. Returns how many. */
unsigned int trace_events_find(int instance, const char *list, char *names[TRACE_EVENTS_MAX]);

/* Lets the instance record the event or not. Returns false with errno on failure. */
bool trace_event_enable(int instance, const char *name, bool on);

/* Reads the event's format file as a text, cut at TRACE_TEXT_MAX - 1 (trace/instance.h). Returns false
 * with errno on failure. */
bool trace_event_format(int instance, const char *name, char *text);

#endif
