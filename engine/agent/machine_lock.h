/* SPDX-License-Identifier: MIT */
/*
 * One run a target: an abstract Unix socket, which leaves no file, holds for every user of the network
 * namespace and ends with its process. Whoever connects is told who holds it.
 */
#ifndef RTGAUGE_MACHINE_LOCK_H
#define RTGAUGE_MACHINE_LOCK_H

#include <stdint.h>

#define MACHINE_LOCK_NAME "rtgauge-target"

struct holder {
	char run[129]; /* "" where it did not say */
	char label[257];
	int64_t pid; /* as the kernel says; 0: not known */
};

/* Returns the lock's descriptor, or -1 with errno; with EADDRINUSE *holder says who has it. */
int machine_lock_take(const char *name, struct holder *holder);

/* Answers one who connected. Never waits. */
void machine_lock_answer(int lock, const struct holder *self);

/* Reads the holder's line, which may come from anybody; what is wrong leaves run and label empty. */
void machine_lock_parse(char *line, struct holder *holder);

#endif
