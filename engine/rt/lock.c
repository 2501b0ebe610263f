// SPDX-License-Identifier: MIT
#include "rt/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "rt/runtime.h"

static int make_mutex(pthread_mutex_t *mutex, int protocol, int ceiling)
{
	pthread_mutexattr_t attr;
	int error;

	pthread_mutexattr_init(&attr);
	error = pthread_mutexattr_setprotocol(&attr, protocol);
#ifdef __GLIBC__
	if (!error && protocol == PTHREAD_PRIO_PROTECT)
		error = pthread_mutexattr_setprioceiling(&attr, ceiling);
#else
	(void)ceiling; /* musl has no priority ceiling, and has already refused the protocol */
#endif
	if (!error)
		error = pthread_mutex_init(mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return error;
}

int lock_make(struct lock *lock, enum lock_kind kind, int ceiling)
{
	lock->kind = kind;
	atomic_store(&lock->word, 0);
	switch (kind) {
	case LOCK_PI_MUTEX:
		return make_mutex(&lock->mutex, PTHREAD_PRIO_INHERIT, 0);
	case LOCK_MUTEX:
		return make_mutex(&lock->mutex, PTHREAD_PRIO_NONE, 0);
	case LOCK_CEILING_MUTEX:
		return make_mutex(&lock->mutex, PTHREAD_PRIO_PROTECT, ceiling);
	case LOCK_SEMAPHORE:
		return sem_init(&lock->semaphore, 0, 1);
	case LOCK_FUTEX:
		return RUNTIME_IS_COKERNEL ? EOPNOTSUPP : 0; /* the lock is Linux's own */
	case LOCK_SPIN:
		break;
	}
	return 0;
}

void lock_end(struct lock *lock)
{
	if (lock->kind == LOCK_SEMAPHORE)
		sem_destroy(&lock->semaphore);
	else if (lock->kind != LOCK_FUTEX && lock->kind != LOCK_SPIN)
		pthread_mutex_destroy(&lock->mutex);
}

/* A waiting thread notes this in the word, so that the holder knows whether to wake it (U. Drepper,
 * Futexes are tricky, 2011, mutex 2). */
static void futex_take(_Atomic int *word)
{
	int was = 0;

	if (atomic_compare_exchange_strong(word, &was, 1))
		return;
	if (was != 2)
		was = atomic_exchange(word, 2);
	while (was) {
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
		was = atomic_exchange(word, 2);
	}
}

static bool spin_take(_Atomic int *word, int64_t give_up_ns)
{
	while (atomic_exchange(word, 1)) {
		while (atomic_load_explicit(word, memory_order_relaxed)) {
			if (clock_now_ns(CLOCK_MONOTONIC) >= give_up_ns)
				return false;
		}
	}
	return true;
}

bool lock_take(struct lock *lock, int64_t give_up_ns)
{
	switch (lock->kind) {
	case LOCK_PI_MUTEX:
	case LOCK_MUTEX:
	case LOCK_CEILING_MUTEX:
		pthread_mutex_lock(&lock->mutex);
		break;
	case LOCK_SEMAPHORE:
		while (sem_wait(&lock->semaphore))
			;
		break;
	case LOCK_FUTEX:
		futex_take(&lock->word);
		break;
	case LOCK_SPIN:
		return spin_take(&lock->word, give_up_ns);
	}
	return true;
}

void lock_give(struct lock *lock)
{
	switch (lock->kind) {
	case LOCK_PI_MUTEX:
	case LOCK_MUTEX:
	case LOCK_CEILING_MUTEX:
		pthread_mutex_unlock(&lock->mutex);
		break;
	case LOCK_SEMAPHORE:
		sem_post(&lock->semaphore);
		break;
	case LOCK_FUTEX:
		if (atomic_exchange(&lock->word, 0) == 2)
			syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		break;
	case LOCK_SPIN:
		atomic_store(&lock->word, 0);
		break;
	}
}
