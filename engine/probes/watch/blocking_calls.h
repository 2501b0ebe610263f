/* SPDX-License-Identifier: MIT */
/* The system calls in which threads sleep. */
#ifndef RTGAUGE_WATCH_BLOCKING_CALLS_H
#define RTGAUGE_WATCH_BLOCKING_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call as the thread made it: its number (-1: none), and the second and third argument. */
struct blocking_call {
	int64_t number, second, third;
};

/* Returns whether the call waits only for a time. */
bool blocking_call_is_pause(const struct blocking_call *call);

enum lock_kind { NO_LOCK, LOCK_PLAIN, LOCK_INHERITS };

/* Writes the call's name, as far as there is room; an unknown call is `syscall NUMBER`. */
const char *blocking_call_name(int64_t number, char *room, size_t size);

/* Returns whether the call waits for a lock, and whether the lock lends its owner the waiter's priority
   (futex(2)). */
enum lock_kind blocking_call_lock(const struct blocking_call *call);

#endif
