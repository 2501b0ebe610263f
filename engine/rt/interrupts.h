/* SPDX-License-Identifier: MIT */
/* How many interrupts one CPU took, as /proc/interrupts counts. */
#ifndef RTGAUGE_INTERRUPTS_H
#define RTGAUGE_INTERRUPTS_H

#include <stddef.h>
#include <stdint.h>

struct interrupts {
	int fd, column;
	char *text;
	size_t size;
};

/* Finds the CPU's column and room for the text. 0 or an errno. */
int interrupts_open(struct interrupts *interrupts, int cpu);

/* All of this CPU up to now; -1: they cannot be read. No allocation. */
int64_t interrupts_read(struct interrupts *interrupts);

/* The sum of one column (0 is the first CPU) of a text in the form of /proc/interrupts. */
int64_t interrupts_sum(const char *text, int column);

#endif
