/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the modules: a character device for one user, with its rings of samples, the state
 * of its measurement, GPIO lines and kernel threads.
 */
#ifndef RTGAUGE_CORE_H
#define RTGAUGE_CORE_H

#include <linux/fs.h>
#include <linux/gpio/consumer.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/stringify.h>

#include "rtgauge_kmod.h"

struct rtgauge_device;
struct rtgauge_rings;

struct rtgauge_ops {
	struct module *owner;
	const char *name; /* of the module and of its device */
	unsigned int start_command;
	size_t parameters_size; /* at most RTGAUGE_PARAMETERS_MAX */
	/* Called with the device's lock held. */
	int (*start)(struct rtgauge_device *device, const void *parameters);
	void (*stop)(struct rtgauge_device *device); /* releases everything that start() acquired */
	/* Commands of only this device; may be NULL. */
	long (*command)(struct rtgauge_device *device, unsigned int command,
			unsigned long argument);
};

#define RTGAUGE_PARAMETERS_MAX 256

struct rtgauge_device {
	const struct rtgauge_ops *ops;
	struct miscdevice misc;
	struct file_operations file_ops;
	unsigned long opened; /* bit 0 */
	struct mutex lock;    /* protects the rest; never held while copying from or to the user */
	struct mutex read_lock; /* one read() at a time */
	u32 capacity;
	struct rtgauge_rings *rings;
	bool started; /* stop() is due */
	/* Written by the measurement itself: */
	int state;
	int reason;
	u64 missed;
	s64 start_ns;
	s64 end_ns;
	int irq;
	int thread;
};

/* Refuses a request: -EINVAL, and one line in the kernel's log. */
#define rtgauge_refuse(device, format, ...)                                                        \
	({                                                                                         \
		pr_warn_ratelimited("%s: " format "\n", (device)->ops->name, ##__VA_ARGS__);       \
		-EINVAL;                                                                           \
	})

#define RTGAUGE_ABI_TEXT __stringify(RTGAUGE_KMOD_ABI)

/* `device` is zero except for `ops`. */
int rtgauge_register(struct rtgauge_device *device);
void rtgauge_unregister(struct rtgauge_device *device);

/* Writes a sample to this CPU's ring, or counts it as lost. Any context except NMI. */
void rtgauge_keep(struct rtgauge_device *device, struct rtgauge_sample *sample);

/* Ends the measurement. stop() is called later. Any context. */
void rtgauge_end(struct rtgauge_device *device, enum rtgauge_reason reason);

static inline bool rtgauge_running(const struct rtgauge_device *device)
{
	return READ_ONCE(device->state) == RTGAUGE_STATE_RUNNING;
}

/* Check parameters that tasks share. Return 0, or -EINVAL with a line in the log. */
int rtgauge_check_abi(const struct rtgauge_device *device, u32 abi, const u32 *reserved,
		      size_t count);
int rtgauge_check_cpu(const struct rtgauge_device *device, s32 cpu);
int rtgauge_check_priority(const struct rtgauge_device *device, u32 priority, bool thread);

/*
 * Requests a line as an output at 0, or as an input. Returns NULL if `line` is empty, and an
 * ERR_PTR with a line in the log on failure.
 */
struct gpio_desc *rtgauge_line_get(struct rtgauge_device *device, const struct rtgauge_line *line,
				   bool output);

/* Creates a FIFO kernel thread on `cpu`. The caller wakes it. */
struct task_struct *rtgauge_thread(struct rtgauge_device *device, int (*run)(void *), void *data,
				   int cpu, unsigned int priority);

#endif
