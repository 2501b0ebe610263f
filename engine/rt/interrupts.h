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

/* Finds the CPU's column, and allocates room for the text. Returns 0 or an errno. */
int interrupts_open(struct interrupts *interrupts, int cpu);

/* Returns all interrupts of this CPU so far; -1: they cannot be read. Allocates nothing. */
int64_t interrupts_read(struct interrupts *interrupts);

/* Returns the sum of one column (0 is the first CPU) of a text in the form of /proc/interrupts. */
int64_t interrupts_sum(const char *text, int column);

#endif
