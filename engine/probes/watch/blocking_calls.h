/* SPDX-License-Identifier: MIT */
/* The system calls in which threads sleep. */
#ifndef RTGAUGE_WATCH_BLOCKING_CALLS_H
#define RTGAUGE_WATCH_BLOCKING_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call as the thread made it: its number (-1: none), the second and third argument. */
struct blocking_call {
	int64_t number, second, third;
};

/* Whether it waits only for a time. */
bool blocking_call_is_pause(const struct blocking_call *call);

enum lock_kind { NO_LOCK, LOCK_PLAIN, LOCK_INHERITS };

/* Its name; an unknown one is `syscall NUMBER`, as far as there is room. */
const char *blocking_call_name(int64_t number, char *room, size_t size);

/* Whether it waits for a lock, and whether the lock lends its owner the waiter's priority (futex(2)). */
enum lock_kind blocking_call_lock(const struct blocking_call *call);

#endif
