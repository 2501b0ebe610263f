/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wire: lines, any two of which can be joined, and the time of every edge (wire.c). A front
 * makes the lines usable: a Linux GPIO chip (wire_chip.c) or, on Cobalt, RTDM's GPIO devices
 * (wire_rtdm.c).
 */
#ifndef RTGAUGE_WIRE_H
#define RTGAUGE_WIRE_H

#include <linux/irq.h>
#include <linux/types.h>

#include "core.h"

#define WIRE_LINES_MAX 64

struct line {
	unsigned int offset;
	struct line *peer;
	bool output;
	bool value;   /* of an output */
	bool pull_up; /* the level of an input without a driver */
	bool seen;
	/* The interrupt */
	bool unmasked;
	unsigned int type; /* IRQ_TYPE_EDGE_* */
	bool pending;	   /* the edge below waits for its interrupt, */
	bool due;	   /* which is not raised yet */
	struct rtgauge_sample sample;
	/* Counts */
	u64 edges;
	u64 merged;
	u64 ignored;
};

extern struct rtgauge_device wire_device;
extern struct line wire_line[WIRE_LINES_MAX];
extern unsigned int wire_lines;

/* A line and its peer are read and changed only between these two calls, with interrupts off. */
unsigned long wire_lock(void);
/* If the line made an edge, wire_raise_due() must follow. */
void wire_unlock(unsigned long flags);
/* Raises the interrupts of the line's edges, on the line itself or on its peer. */
void wire_raise_due(struct line *line);
/* Both calls in one. */
void wire_unlock_raise(struct line *line, unsigned long flags);

/* Called with the lock held. */
bool wire_level(const struct line *line);
void wire_put(struct line *line, bool value); /* of an output */
void wire_make_input(struct line *line);
void wire_make_output(struct line *line, bool value);
void wire_pull(struct line *line, bool up);

/* The interrupt of a line. Called in hard-irq context, on the interrupt's CPU. */
void wire_interrupt(struct line *line);

/* The front: */
void wire_front_prepare(void);
int wire_front_add(void);
void wire_front_remove(void);
/* Causes a call of wire_interrupt(). Runs on the CPU of the edge, with its interrupts off. */
void wire_front_raise(struct line *line);
/* Runs the handlers of the line. */
void wire_front_handle(struct line *line);

#endif
