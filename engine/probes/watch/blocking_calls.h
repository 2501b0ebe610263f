/* SPDX-License-Identifier: MIT */
/* The system calls in which threads can sleep. */
#ifndef RTGAUGE_WATCH_BLOCKING_CALLS_H
#define RTGAUGE_WATCH_BLOCKING_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALL_ARGUMENTS 3
#define CALL_NAME_MAX 24
#define CALL_FILTER_MAX 4096
#define CALL_EVENTS_MAX 8192

/* The sets of numbers: of this engine's own architecture, and of 32-bit programs on a 64-bit kernel. */
enum call_table { CALLS_NATIVE, CALLS_32_BIT };

/* A call as the thread made it: its number (-1: none), and its first arguments. */
struct blocking_call {
	int64_t number;
	uint64_t arguments[CALL_ARGUMENTS];
	enum call_table table;
};

/* Writes the call's name, as far as there is room; an unknown call is `syscall NUMBER`. */
const char *blocking_call_name(const struct blocking_call *call, char *room, size_t size);

/* Returns the number of this engine's call with this name; -1: there is none. */
int64_t blocking_call_number(const char *name);

/* Returns whether the call waits only for a time. */
bool blocking_call_is_pause(const struct blocking_call *call);

/* Returns whether a timer that is not an ordinary time-out can be the call's own: in sched_yield, a deadline
 * thread waits for its period; io_uring_enter has a time-out of its own kind. */
bool blocking_call_has_special_timer(const struct blocking_call *call);

/* Returns whether the call continues one that a signal interrupted (restart_syscall). */
bool blocking_call_continues(const struct blocking_call *call);

/* Returns whether the call can wait for something: FUTEX_WAKE, for example, cannot. */
bool blocking_call_can_wait(const struct blocking_call *call);

/* Returns whether the result (0 or a negative errno) means that the call's time is over. */
bool blocking_call_timed_out(const struct blocking_call *call, int64_t result);

/* Returns the object on which the call waits: a file descriptor, a futex address, a clock; 0: none. Two
 * waits with the same number and object are of the same kind. */
uint64_t blocking_call_object(const struct blocking_call *call);

/* Returns the file descriptor on which the call waits; -1: it waits on none. */
int blocking_call_fd(const struct blocking_call *call);

/* Returns where the program keeps the time to sleep: different sleeps of a program have different places.
 * 0: unknown. */
uint64_t blocking_call_place(const struct blocking_call *call);

enum lock_kind { NO_LOCK, LOCK_PLAIN, LOCK_INHERITS };

/* Returns whether the call waits for a lock, and whether the lock lends its owner the waiter's priority
   (futex(2)). */
enum lock_kind blocking_call_lock(const struct blocking_call *call);

/* Returns by how much (ns) a time-out of the call may be rounded up: to whole milliseconds, and Python's
 * selectors may add another one. */
int64_t blocking_call_rounds_ns(const struct blocking_call *call);

/* Returns whether only a signal ends the call. */
bool blocking_call_waits_for_signal(const struct blocking_call *call);

/* Returns whether the call waits on a futex. A program may take another one each time. */
bool blocking_call_is_futex(const struct blocking_call *call);

/* Returns whether any of several objects, or a signal, can end the call: so can a timer that was armed
 * before. */
bool blocking_call_waits_for_any(const struct blocking_call *call);

/* What ends the call: one object, any of several objects or a signal, a file of any kind; a disk, or the
 * kernel's memory (from BY_DISK on). */
enum call_end { BY_ONE, BY_ANY, BY_FILE, BY_DISK, BY_OPEN, BY_CLOSE, BY_MEMORY, BY_THREAD };

enum call_end blocking_call_end(const struct blocking_call *call);

/* Returns whether the call waits for a disk or for memory, and not for an event. */
bool blocking_call_is_storage(const struct blocking_call *call);

/* Writes a filter of the events sys_enter and sys_exit that passes these calls only. */
void blocking_calls_filter(enum call_table table, char filter[CALL_FILTER_MAX]);

/* Writes such a filter for the calls that always use a disk, the kernel's memory or a new thread. At most
 * half of the room is used. */
void blocking_calls_costly_filter(char filter[CALL_FILTER_MAX]);

/* Writes the names of the kernel's events at the begin and the end of these calls, separated by commas
 * (trace/events.h). For programs of this engine's architecture, if that has 64 bits. */
void blocking_calls_events(char list[CALL_EVENTS_MAX]);

#endif
