/* SPDX-License-Identifier: GPL-2.0-only */
/* The lines of rt.h on Xenomai's Cobalt core: the wire's. Only rt.h includes it. */
#ifndef RTGAUGE_RT_COBALT_LINE_H
#define RTGAUGE_RT_COBALT_LINE_H

#include "core.h"
#include "wire_rtdm.h"

/*
 * Linux's GPIO lines cannot be used while Linux itself is interrupted. So a line is one of the
 * wire's. Cobalt handles the wire's interrupts on the CPU of the edge.
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

/* Called after the line was set and its time was taken: raises the interrupt at the other end. */
static inline void rt_line_raise(RT_LINE *line)
{
	rt_wire->raise(line);
}

/* The handler runs at each edge, in Linux's hard-irq context. NULL: it no longer runs. */
static inline int rt_line_listen(RT_LINE *line, void (*handler)(void))
{
	if (!IS_ERR_OR_NULL(line))
		rt_wire->listen(line, handler);
	return 0;
}

/* Whether a line's interrupt is Linux's, and is requested and moved as such. */
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

#endif
