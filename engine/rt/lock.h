/* SPDX-License-Identifier: MIT */
/* One lock of each kind that a program may choose, behind one interface. */
#ifndef RTGAUGE_LOCK_H
#define RTGAUGE_LOCK_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum lock_kind {
	LOCK_PI_MUTEX = 1,
	LOCK_MUTEX,
	LOCK_CEILING_MUTEX,
	LOCK_SEMAPHORE,
	LOCK_FUTEX,
	LOCK_SPIN,
};

struct lock {
	enum lock_kind kind;
	pthread_mutex_t mutex;
	sem_t semaphore;
	_Atomic int word; /* futex: 0 free, 1 taken, 2 taken with waiters; spin: 0 free, 1 taken */
};

/* Makes a free lock. ceiling: the priority of a ceiling mutex. Returns 0 or an errno if there is no such
 * lock here. */
int lock_make(struct lock *lock, enum lock_kind kind, int ceiling);

/* Destroys a free lock. */
void lock_end(struct lock *lock);

/*
 * Takes the lock. Only a spin lock gives up, at give_up_ns (CLOCK_MONOTONIC), and returns false. With the
 * other locks, a thread sleeps until the holder releases the lock.
 */
bool lock_take(struct lock *lock, int64_t give_up_ns);

void lock_give(struct lock *lock);

#endif
