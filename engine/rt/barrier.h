/* SPDX-License-Identifier: MIT */
/*
 * A barrier for threads that compute together, repeatedly. The last thread to arrive does the common work
 * while the others wait; they may read its results until they arrive again. If each thread has a CPU of
 * its own, waiting threads spin for a moment, and then sleep. Otherwise they sleep at once, because a
 * spinning FIFO thread would keep the others from arriving.
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
	/* used alternately, because a thread that is early at the next meeting must not take a token of
	   this one */
	sem_t gate[2];
};

/* cpus: the CPUs on which the threads run. */
void barrier_init(struct barrier *b, unsigned int threads, unsigned int cpus);

/* Waits until all threads are here. The last thread calls once(arg) before it lets the others continue. */
void barrier_pass(struct barrier *b, void (*once)(void *arg), void *arg);

#endif
