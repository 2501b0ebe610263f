/* SPDX-License-Identifier: MIT */
/*
 * A barrier for threads that compute together, again and again. The last one to arrive does what is to be
 * done once, while the others wait; what it writes they may read until they arrive the next time. Who waits
 * spins for a moment where each thread has a CPU of its own, and sleeps after that or where it has none: a
 * thread that spins under FIFO would keep the one it waits for from ever coming.
 */
#ifndef RTGAUGE_BARRIER_H
#define RTGAUGE_BARRIER_H

#include <semaphore.h>
#include <stdatomic.h>

#include "base/cache_line.h"

struct barrier {
	_Alignas(CACHE_LINE) _Atomic unsigned int arrived;
	_Alignas(CACHE_LINE) _Atomic unsigned int generation;
	/* constant */
	_Alignas(CACHE_LINE) unsigned int threads, spins;
	sem_t gate[2]; /* by turns: who is early at the next meeting must not take a token of this one */
};

/* cpus: on which the threads run. */
void barrier_init(struct barrier *b, unsigned int threads, unsigned int cpus);

/* Waits until all threads are here. The last one calls once(arg) before it lets the others go. */
void barrier_pass(struct barrier *b, void (*once)(void *arg), void *arg);

#endif
