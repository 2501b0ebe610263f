/* SPDX-License-Identifier: MIT */
/* Counts the interrupts of one CPU, from /proc/interrupts. */
#ifndef RTGAUGE_INTERRUPTS_H
#define RTGAUGE_INTERRUPTS_H

#include <stddef.h>
#include <stdint.h>

struct interrupts {
	int fd, column;
	char *text;
	size_t size;
};

/* Finds the CPU's column, and allocates memory for the text. Returns 0 or an errno. */
int interrupts_open(struct interrupts *interrupts, int cpu);

/* Returns the number of this CPU's interrupts up to now; -1: it cannot be read. Allocates nothing. */
int64_t interrupts_read(struct interrupts *interrupts);

/* Returns the sum of one column (0: the first CPU) of a text in the form of /proc/interrupts. */
int64_t interrupts_sum(const char *text, int column);

#endif
