/* SPDX-License-Identifier: MIT */
/* One lock of each kind that a program may choose, behind one face. */
#ifndef RTGAUGE_ANYLOCK_H
#define RTGAUGE_ANYLOCK_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum anylock_kind {
	LOCK_PI_MUTEX = 1,
	LOCK_MUTEX,
	LOCK_CEILING_MUTEX,
	LOCK_SEMAPHORE,
	LOCK_FUTEX,
	LOCK_SPIN,
};

struct anylock {
	enum anylock_kind kind;
	pthread_mutex_t mutex;
	sem_t semaphore;
	_Atomic int word; /* futex: 0 free, 1 taken, 2 taken and waited for; spin: 0 free, 1 taken */
};

/* A free lock. ceiling: the priority of a ceiling mutex. 0, or an errno: there is no such lock here. */
int anylock_make(struct anylock *lock, enum anylock_kind kind, int ceiling);

/* The lock is free and is not used any more. */
void anylock_end(struct anylock *lock);

/*
 * Takes it. Only a spin lock gives up: at give_up_ns (CLOCK_MONOTONIC), false then. The others sleep until
 * they have it, and have it when who holds it gives it.
 */
bool anylock_take(struct anylock *lock, int64_t give_up_ns);

void anylock_give(struct anylock *lock);

#endif
