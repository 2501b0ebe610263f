/* SPDX-License-Identifier: MIT */
/*
 * A barrier for threads that compute together, repeatedly. The last one to arrive does the common work
 * while the others wait; they may read its results until they arrive the next time. If each thread has its
 * own CPU, waiting threads spin for a moment, then sleep; otherwise they sleep at once, because a spinning
 * FIFO thread would keep the others from arriving.
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
	/* used alternately: a thread that is early at the next meeting must not take a token of this one */
	sem_t gate[2];
};

/* cpus: on which the threads run. */
void barrier_init(struct barrier *b, unsigned int threads, unsigned int cpus);

/* Waits until all threads are here. The last one calls once(arg) before it lets the others go. */
void barrier_pass(struct barrier *b, void (*once)(void *arg), void *arg);

#endif
