/* SPDX-License-Identifier: GPL-2.0-only */
/* The wire's lines for tasks in the kernel on Cobalt, which find them with symbol_get(). */
#ifndef RTGAUGE_WIRE_RTDM_H
#define RTGAUGE_WIRE_RTDM_H

#include <linux/types.h>

struct pin;

/* The chip that struct rtgauge_line names. */
#define WIRE_CHIP "rtgauge_wire"

struct rtgauge_wire_pins {
	/*
	 * Takes a line: an output at 0, or an input. Returns an ERR_PTR: -EINVAL, there is no
	 * such line; -EBUSY, the line is in use.
	 */
	struct pin *(*take)(unsigned int offset, bool output);
	void (*give)(struct pin *pin);
	/*
	 * From now on, each edge of an input runs `handler`, in hard-irq context on the CPU of
	 * the edge. NULL: no handler runs any more when this returns.
	 */
	void (*listen)(struct pin *pin, void (*handler)(void));
	bool (*level)(struct pin *pin);
	/* Changes an output. The interrupt at the other end comes with raise(). */
	void (*put)(struct pin *pin, bool value);
	void (*raise)(struct pin *pin);
};

extern const struct rtgauge_wire_pins rtgauge_wire_pins;

#endif
