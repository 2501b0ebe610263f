// SPDX-License-Identifier: MIT
/*
 * POSIX's names over LXRT, which is RTAI's interface for user space. They are linked instead of the C
 * library's functions (ld --wrap), which are __real_. An object that was not made here, for example by the
 * C library, is left to the C library.
 */
#include <errno.h>
#include <pthread.h>
#include <rtai_sem.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "rt/rtai/lxrt.h"
#include "rt/runtime.h"

#define MARK UINT64_C(0x7274676175676521)

/* Stored inside a sem_t or a pthread_mutex_t. */
struct object {
	uint64_t mark;
	SEM *sem;
};

_Static_assert(sizeof(struct object) <= sizeof(sem_t) && sizeof(struct object) <= sizeof(pthread_mutex_t),
	       "an object lies in that of POSIX");

int __real_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left);
int __real_sem_init(sem_t *posix, int shared, unsigned int value);
int __real_sem_destroy(sem_t *posix);
int __real_sem_wait(sem_t *posix);
int __real_sem_trywait(sem_t *posix);
int __real_sem_timedwait(sem_t *posix, const struct timespec *until);
int __real_sem_post(sem_t *posix);
int __real_pthread_mutex_init(pthread_mutex_t *posix, const pthread_mutexattr_t *attr);
int __real_pthread_mutex_destroy(pthread_mutex_t *posix);
int __real_pthread_mutex_lock(pthread_mutex_t *posix);
int __real_pthread_mutex_unlock(pthread_mutex_t *posix);
int __real_sched_yield(void);

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left);
int __wrap_sem_init(sem_t *posix, int shared, unsigned int value);
int __wrap_sem_destroy(sem_t *posix);
int __wrap_sem_wait(sem_t *posix);
int __wrap_sem_trywait(sem_t *posix);
int __wrap_sem_timedwait(sem_t *posix, const struct timespec *until);
int __wrap_sem_post(sem_t *posix);
int __wrap_pthread_mutex_init(pthread_mutex_t *posix, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *posix);
int __wrap_pthread_mutex_lock(pthread_mutex_t *posix);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *posix);
int __wrap_sched_yield(void);

/* RTAI's default number of names. */
#define SEMAPHORES 256

static SEM *_Atomic semaphores[SEMAPHORES];

static void keep(SEM *sem)
{
	for (unsigned int i = 0; i < SEMAPHORES; i++) {
		SEM *none = NULL;

		if (atomic_compare_exchange_strong(&semaphores[i], &none, sem))
			return;
	}
}

static void delete_semaphore(SEM *sem)
{
	for (unsigned int i = 0; i < SEMAPHORES; i++) {
		SEM *expected = sem;

		if (atomic_compare_exchange_strong(&semaphores[i], &expected, NULL))
			break;
	}
	rt_sem_delete(sem);
}

void lxrt_delete_semaphores(void)
{
	for (unsigned int i = 0; i < SEMAPHORES; i++) {
		SEM *sem = atomic_exchange(&semaphores[i], NULL);

		if (sem)
			rt_sem_delete(sem);
	}
}

static SEM *rtai_object(const void *posix)
{
	struct object object;

	memcpy(&object, posix, sizeof(object));
	return object.mark == MARK ? object.sem : NULL;
}

static int make_object(void *posix, int value, int type)
{
	struct object object = {.mark = MARK};

	lxrt_own_task();
	object.sem = rt_typed_sem_init(0, value, type);
	if (!object.sem)
		return ENOMEM;
	keep(object.sem);
	memcpy(posix, &object, sizeof(object));
	return 0;
}

static void end_object(void *posix)
{
	delete_semaphore(rtai_object(posix));
	memset(posix, 0, sizeof(struct object));
}

/* Converts the result of a call to RTAI into 0 or an errno. */
static int error_of(int result)
{
	if (!rt_is_reterr(result))
		return 0;
	return result == RTE_UNBLKD ? EINTR : result == RTE_TIMOUT ? ETIMEDOUT : EINVAL;
}

static int errno_of(int result)
{
	int error = error_of(result);

	if (!error)
		return 0;
	errno = error;
	return -1;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	int64_t now_ns, until_ns;
	struct timespec length;

	if (clock != CLOCK_MONOTONIC)
		return __real_clock_nanosleep(clock, flags, time, left);
	if (lxrt_hard) {
		until_ns = timespec_ns(time) + (flags & TIMER_ABSTIME ? 0 : lxrt_now_ns());
		return error_of(rt_sleep_until(lxrt_count_at(until_ns))) == EINTR ? EINTR : 0;
	}
	if (!(flags & TIMER_ABSTIME))
		return __real_clock_nanosleep(clock, flags, time, left);
	/* The two clocks run at different rates. */
	now_ns = lxrt_now_ns();
	if (timespec_ns(time) <= now_ns)
		return 0;
	length = ns_timespec(timespec_ns(time) - now_ns);
	return __real_clock_nanosleep(clock, 0, &length, NULL);
}

int __wrap_sem_init(sem_t *posix, int shared, unsigned int value)
{
	int error;

	if (shared)
		return __real_sem_init(posix, shared, value);
	error = make_object(posix, (int)value, CNT_SEM | PRIO_Q);
	if (!error)
		return 0;
	errno = error;
	return -1;
}

int __wrap_sem_destroy(sem_t *posix)
{
	if (!rtai_object(posix))
		return __real_sem_destroy(posix);
	end_object(posix);
	return 0;
}

int __wrap_sem_wait(sem_t *posix)
{
	SEM *sem = rtai_object(posix);
	int result;

	if (!sem)
		return __real_sem_wait(posix);
	lxrt_own_task();
	result = rt_sem_wait(sem);
	if (error_of(result) == EINVAL) {
		/* The object was deleted because this process ends. A thread in hard real time must not
		 * block that. */
		runtime_thread_end();
		for (;;)
			pause();
	}
	return errno_of(result);
}

int __wrap_sem_trywait(sem_t *posix)
{
	SEM *sem = rtai_object(posix);

	if (!sem)
		return __real_sem_trywait(posix);
	lxrt_own_task();
	if (rt_sem_wait_if(sem) > 0)
		return 0;
	errno = EAGAIN;
	return -1;
}

/* until: CLOCK_REALTIME. */
int __wrap_sem_timedwait(sem_t *posix, const struct timespec *until)
{
	SEM *sem = rtai_object(posix);
	struct timespec now;
	int64_t length_ns;

	if (!sem)
		return __real_sem_timedwait(posix, until);
	lxrt_own_task();
	clock_gettime(CLOCK_REALTIME, &now);
	length_ns = timespec_ns(until) - timespec_ns(&now);
	return errno_of(rt_sem_wait_until(sem, lxrt_count_at(lxrt_now_ns() + length_ns)));
}

int __wrap_sem_post(sem_t *posix)
{
	SEM *sem = rtai_object(posix);

	if (!sem)
		return __real_sem_post(posix);
	lxrt_own_task();
	return errno_of(rt_sem_signal(sem));
}

/* With inheritance, it is a resource semaphore. RTAI has no priority ceiling. */
int __wrap_pthread_mutex_init(pthread_mutex_t *posix, const pthread_mutexattr_t *attr)
{
	int protocol = PTHREAD_PRIO_NONE;

	if (!attr)
		return __real_pthread_mutex_init(posix, attr);
	pthread_mutexattr_getprotocol(attr, &protocol);
	if (protocol == PTHREAD_PRIO_PROTECT)
		return ENOTSUP;
	return make_object(posix, 1, protocol == PTHREAD_PRIO_INHERIT ? RES_SEM : BIN_SEM | PRIO_Q);
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *posix)
{
	if (!rtai_object(posix))
		return __real_pthread_mutex_destroy(posix);
	end_object(posix);
	return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *posix)
{
	SEM *sem = rtai_object(posix);
	int error;

	if (!sem)
		return __real_pthread_mutex_lock(posix);
	lxrt_own_task();
	do
		error = error_of(rt_sem_wait(sem));
	while (error == EINTR);
	return error;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *posix)
{
	SEM *sem = rtai_object(posix);

	if (!sem)
		return __real_pthread_mutex_unlock(posix);
	return error_of(rt_sem_signal(sem));
}

int __wrap_sched_yield(void)
{
	return lxrt_hard ? rt_task_yield() : __real_sched_yield();
}
