/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels, from 6.1 on; with Xenomai from 5.10 on, and with RTAI from 5.4
   on. */
#ifndef RTGAUGE_COMPAT_H
#define RTGAUGE_COMPAT_H

#include <linux/gpio/driver.h>
#include <linux/gpio/machine.h>
#include <linux/hrtimer.h>
#include <linux/irq.h>
#include <linux/irqflags.h>
#include <linux/version.h>

#ifdef CONFIG_XENOMAI
#define RTGAUGE_OLDEST KERNEL_VERSION(5, 10, 0)
#elif defined(CONFIG_IPIPE)
#define RTGAUGE_OLDEST KERNEL_VERSION(5, 4, 0)
#else
#define RTGAUGE_OLDEST KERNEL_VERSION(6, 1, 0)
#endif
#if LINUX_VERSION_CODE < RTGAUGE_OLDEST
#error "rtgauge's modules need Linux 6.1 or newer"
#endif
#ifndef CONFIG_64BIT
#error "rtgauge's modules need a 64-bit kernel"
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* A lock that may be taken while Linux itself is interrupted, with the processor's interrupts
   off. */
#ifdef CONFIG_IRQ_PIPELINE
#define RTGAUGE_SPINLOCK hard_spinlock_t
#else
#define RTGAUGE_SPINLOCK raw_spinlock_t
#endif

/* Off in the processor, even where Linux's own interrupts are only marked as off (Dovetail's
 * interrupt pipeline, the I-pipe). */
static inline unsigned long rtgauge_irqs_off(void)
{
	unsigned long flags;

#if defined(CONFIG_IRQ_PIPELINE) || defined(CONFIG_IPIPE)
	flags = hard_local_irq_save();
#else
	local_irq_save(flags);
#endif
	return flags;
}

static inline void rtgauge_irqs_back(unsigned long flags)
{
#if defined(CONFIG_IRQ_PIPELINE) || defined(CONFIG_IPIPE)
	hard_local_irq_restore(flags);
#else
	local_irq_restore(flags);
#endif
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 5, 0)
#define compat_ptr_ioctl NULL
#undef GPIO_LOOKUP
#define GPIO_LOOKUP(chip, line, name, flags)                                                       \
	((struct gpiod_lookup)GPIO_LOOKUP_IDX(chip, line, name, 0, flags))
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define rtgauge_class_create(name) class_create(THIS_MODULE, name)
#else
#define rtgauge_class_create(name) class_create(name)
#endif

/* Of a device that a class names, since 6.2. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define RTGAUGE_CONST_DEVICE
#else
#define RTGAUGE_CONST_DEVICE const
#endif

/* A GPIO chip's set() returns an error since 6.17. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define RTGAUGE_SET_RESULT void
#define RTGAUGE_SET_DONE
#else
#define RTGAUGE_SET_RESULT int
#define RTGAUGE_SET_DONE 0
#endif

/*
 * Until 6.13 an interrupt is moved to another CPU only when it next occurs, unless this flag is
 * set.
 */
static inline void rtgauge_irq_moves_at_once(unsigned int irq)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
	irq_set_status_flags(irq, IRQ_MOVE_PCNTXT);
#endif
}

#endif
