// SPDX-License-Identifier: MIT
#include "probes/watch/blocking_calls.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

/* FUTEX_LOCK_PI2, which older headers lack. */
#define LOCK_PI2 13
/* The value that glibc and Rust's library write into a plain lock if a thread waits for it. */
#define CONTENDED 2

/* What the first argument is, or where the time to sleep is kept. */
enum object { OBJECT_NONE, OBJECT_FD, OBJECT_ADDRESS, OBJECT_FUTEX, OBJECT_CLOCK, OBJECT_SLEEP };

struct known_call {
	long number; /* -1: this architecture has no such call */
	const char *name;
	enum object object;
	enum call_end ended;
};

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

static const struct known_call native[] = {
	{SYS_clock_nanosleep, "clock_nanosleep", OBJECT_CLOCK, BY_ONE},
	{SYS_nanosleep, "nanosleep", OBJECT_SLEEP, BY_ONE},
	{SYS_restart_syscall, "restart_syscall", OBJECT_NONE, BY_ONE},
	{SYS_futex, "futex", OBJECT_FUTEX, BY_ONE},
	{SYS_futex_wait, "futex_wait", OBJECT_ADDRESS, BY_ONE},
	{SYS_futex_waitv, "futex_waitv", OBJECT_ADDRESS, BY_ONE},
	{SYS_read, "read", OBJECT_FD, BY_FILE},
	{SYS_readv, "readv", OBJECT_FD, BY_FILE},
	{SYS_write, "write", OBJECT_FD, BY_FILE},
	{SYS_writev, "writev", OBJECT_FD, BY_FILE},
	{SYS_ppoll, "ppoll", OBJECT_ADDRESS, BY_ANY},
	{SYS_pselect6, "pselect6", OBJECT_NONE, BY_ANY},
	{SYS_epoll_pwait, "epoll_pwait", OBJECT_FD, BY_ANY},
	{SYS_epoll_pwait2, "epoll_pwait2", OBJECT_FD, BY_ANY},
	{SYS_recvfrom, "recvfrom", OBJECT_FD, BY_ONE},
	{SYS_recvmsg, "recvmsg", OBJECT_FD, BY_ONE},
	{SYS_recvmmsg, "recvmmsg", OBJECT_FD, BY_ONE},
	{SYS_sendto, "sendto", OBJECT_FD, BY_ONE},
	{SYS_sendmsg, "sendmsg", OBJECT_FD, BY_ONE},
	{SYS_sendmmsg, "sendmmsg", OBJECT_FD, BY_ONE},
	{SYS_accept4, "accept4", OBJECT_FD, BY_ONE},
	{SYS_accept, "accept", OBJECT_FD, BY_ONE},
	{SYS_connect, "connect", OBJECT_FD, BY_ONE},
	{SYS_ioctl, "ioctl", OBJECT_FD, BY_ONE},
	{SYS_fcntl, "fcntl", OBJECT_FD, BY_ONE},
	{SYS_flock, "flock", OBJECT_FD, BY_ONE},
	{SYS_rt_sigtimedwait, "rt_sigtimedwait", OBJECT_NONE, BY_ANY},
	{SYS_rt_sigsuspend, "rt_sigsuspend", OBJECT_NONE, BY_ANY},
	{SYS_sched_yield, "sched_yield", OBJECT_NONE, BY_ONE},
	{SYS_io_uring_enter, "io_uring_enter", OBJECT_FD, BY_ANY},
	{SYS_io_getevents, "io_getevents", OBJECT_ADDRESS, BY_ANY},
	{SYS_mq_timedreceive, "mq_timedreceive", OBJECT_FD, BY_ONE},
	{SYS_mq_timedsend, "mq_timedsend", OBJECT_FD, BY_ONE},
	{SYS_msgrcv, "msgrcv", OBJECT_FD, BY_ONE},
	{SYS_msgsnd, "msgsnd", OBJECT_FD, BY_ONE},
	{SYS_semtimedop, "semtimedop", OBJECT_FD, BY_ONE},
	{SYS_semop, "semop", OBJECT_FD, BY_ONE},
	{SYS_wait4, "wait4", OBJECT_NONE, BY_ONE},
	{SYS_waitid, "waitid", OBJECT_NONE, BY_ONE},
	{SYS_fsync, "fsync", OBJECT_FD, BY_DISK},
	{SYS_fdatasync, "fdatasync", OBJECT_FD, BY_DISK},
	{SYS_sync, "sync", OBJECT_NONE, BY_DISK},
	{SYS_syncfs, "syncfs", OBJECT_FD, BY_DISK},
	{SYS_msync, "msync", OBJECT_NONE, BY_DISK},
	{SYS_pread64, "pread64", OBJECT_FD, BY_DISK},
	{SYS_pwrite64, "pwrite64", OBJECT_FD, BY_DISK},
	{SYS_preadv, "preadv", OBJECT_FD, BY_DISK},
	{SYS_pwritev, "pwritev", OBJECT_FD, BY_DISK},
	{SYS_ftruncate, "ftruncate", OBJECT_FD, BY_DISK},
	{SYS_fallocate, "fallocate", OBJECT_FD, BY_DISK},
	{SYS_openat, "openat", OBJECT_NONE, BY_OPEN},
	{SYS_close, "close", OBJECT_NONE, BY_CLOSE},
	{SYS_unlinkat, "unlinkat", OBJECT_NONE, BY_DISK},
	{SYS_renameat2, "renameat2", OBJECT_NONE, BY_DISK},
	{SYS_munmap, "munmap", OBJECT_NONE, BY_MEMORY},
	{SYS_mprotect, "mprotect", OBJECT_NONE, BY_MEMORY},
	{SYS_madvise, "madvise", OBJECT_NONE, BY_MEMORY},
	{SYS_mlock, "mlock", OBJECT_NONE, BY_MEMORY},
	{SYS_mremap, "mremap", OBJECT_NONE, BY_MEMORY},
	{SYS_brk, "brk", OBJECT_NONE, BY_MEMORY},
	{SYS_clone, "clone", OBJECT_NONE, BY_THREAD},
	{SYS_clone3, "clone3", OBJECT_NONE, BY_THREAD},
#ifdef SYS_clock_nanosleep_time64
	{SYS_clock_nanosleep_time64, "clock_nanosleep", OBJECT_CLOCK, BY_ONE},
	{SYS_futex_time64, "futex", OBJECT_FUTEX, BY_ONE},
	{SYS_ppoll_time64, "ppoll", OBJECT_ADDRESS, BY_ANY},
	{SYS_pselect6_time64, "pselect6", OBJECT_NONE, BY_ANY},
	{SYS_rt_sigtimedwait_time64, "rt_sigtimedwait", OBJECT_NONE, BY_ANY},
#endif
#ifdef SYS_unlink
	{SYS_unlink, "unlink", OBJECT_NONE, BY_DISK},
#endif
#ifdef SYS_rename
	{SYS_rename, "rename", OBJECT_NONE, BY_DISK},
#endif
#ifdef SYS_open
	{SYS_open, "open", OBJECT_NONE, BY_OPEN},
#endif
#ifdef SYS_mmap
	{SYS_mmap, "mmap", OBJECT_NONE, BY_MEMORY},
#endif
#ifdef SYS_mmap2
	{SYS_mmap2, "mmap", OBJECT_NONE, BY_MEMORY},
#endif
#ifdef SYS_poll
	{SYS_poll, "poll", OBJECT_ADDRESS, BY_ANY},
#endif
#ifdef SYS_select
	{SYS_select, "select", OBJECT_NONE, BY_ANY},
#endif
#ifdef SYS__newselect
	{SYS__newselect, "select", OBJECT_NONE, BY_ANY},
#endif
#ifdef SYS_epoll_wait
	{SYS_epoll_wait, "epoll_wait", OBJECT_FD, BY_ANY},
#endif
#ifdef SYS_pause
	{SYS_pause, "pause", OBJECT_NONE, BY_ANY},
#endif
};

/* The calls of a 32-bit program on a 64-bit kernel: i386 (arch/x86/entry/syscalls/syscall_32.tbl) on
 * x86-64, EABI (arch/arm/tools/syscall.tbl) on arm64. */
static const struct known_call narrow[] = {
#if defined(__x86_64__)
	{267, "clock_nanosleep", OBJECT_CLOCK, BY_ONE},
	{256, "epoll_wait", OBJECT_FD, BY_ANY},
	{319, "epoll_pwait", OBJECT_FD, BY_ANY},
	{308, "pselect6", OBJECT_NONE, BY_ANY},
	{309, "ppoll", OBJECT_ADDRESS, BY_ANY},
	{371, "recvfrom", OBJECT_FD, BY_ONE},
	{372, "recvmsg", OBJECT_FD, BY_ONE},
	{369, "sendto", OBJECT_FD, BY_ONE},
	{370, "sendmsg", OBJECT_FD, BY_ONE},
	{364, "accept4", OBJECT_FD, BY_ONE},
	{295, "openat", OBJECT_NONE, BY_OPEN},
	{337, "recvmmsg", OBJECT_FD, BY_ONE},
	{345, "sendmmsg", OBJECT_FD, BY_ONE},
	{362, "connect", OBJECT_FD, BY_ONE},
	{247, "io_getevents", OBJECT_ADDRESS, BY_ANY},
	{280, "mq_timedreceive", OBJECT_FD, BY_ONE},
	{279, "mq_timedsend", OBJECT_FD, BY_ONE},
	{401, "msgrcv", OBJECT_FD, BY_ONE},
	{400, "msgsnd", OBJECT_FD, BY_ONE},
	{284, "waitid", OBJECT_NONE, BY_ONE},
	{344, "syncfs", OBJECT_FD, BY_DISK},
	{333, "preadv", OBJECT_FD, BY_DISK},
	{334, "pwritev", OBJECT_FD, BY_DISK},
	{324, "fallocate", OBJECT_FD, BY_DISK},
	{301, "unlinkat", OBJECT_NONE, BY_DISK},
	{353, "renameat2", OBJECT_NONE, BY_DISK},
	{219, "madvise", OBJECT_NONE, BY_MEMORY},
#elif defined(__aarch64__)
	{265, "clock_nanosleep", OBJECT_CLOCK, BY_ONE},
	{252, "epoll_wait", OBJECT_FD, BY_ANY},
	{346, "epoll_pwait", OBJECT_FD, BY_ANY},
	{335, "pselect6", OBJECT_NONE, BY_ANY},
	{336, "ppoll", OBJECT_ADDRESS, BY_ANY},
	{292, "recvfrom", OBJECT_FD, BY_ONE},
	{297, "recvmsg", OBJECT_FD, BY_ONE},
	{290, "sendto", OBJECT_FD, BY_ONE},
	{296, "sendmsg", OBJECT_FD, BY_ONE},
	{366, "accept4", OBJECT_FD, BY_ONE},
	{322, "openat", OBJECT_NONE, BY_OPEN},
	{365, "recvmmsg", OBJECT_FD, BY_ONE},
	{374, "sendmmsg", OBJECT_FD, BY_ONE},
	{283, "connect", OBJECT_FD, BY_ONE},
	{245, "io_getevents", OBJECT_ADDRESS, BY_ANY},
	{277, "mq_timedreceive", OBJECT_FD, BY_ONE},
	{276, "mq_timedsend", OBJECT_FD, BY_ONE},
	{302, "msgrcv", OBJECT_FD, BY_ONE},
	{301, "msgsnd", OBJECT_FD, BY_ONE},
	{280, "waitid", OBJECT_NONE, BY_ONE},
	{373, "syncfs", OBJECT_FD, BY_DISK},
	{361, "preadv", OBJECT_FD, BY_DISK},
	{362, "pwritev", OBJECT_FD, BY_DISK},
	{352, "fallocate", OBJECT_FD, BY_DISK},
	{328, "unlinkat", OBJECT_NONE, BY_DISK},
	{382, "renameat2", OBJECT_NONE, BY_DISK},
	{220, "madvise", OBJECT_NONE, BY_MEMORY},
	{285, "accept", OBJECT_FD, BY_ONE},
	{312, "semtimedop", OBJECT_FD, BY_ONE},
	{298, "semop", OBJECT_FD, BY_ONE},
#endif
	/* the same in both */
	{162, "nanosleep", OBJECT_SLEEP, BY_ONE},
	{0, "restart_syscall", OBJECT_NONE, BY_ONE},
	{240, "futex", OBJECT_FUTEX, BY_ONE},
	{422, "futex", OBJECT_FUTEX, BY_ONE},
	{407, "clock_nanosleep", OBJECT_CLOCK, BY_ONE},
	{413, "pselect6", OBJECT_NONE, BY_ANY},
	{414, "ppoll", OBJECT_ADDRESS, BY_ANY},
	{421, "rt_sigtimedwait", OBJECT_NONE, BY_ANY},
	{441, "epoll_pwait2", OBJECT_FD, BY_ANY},
	{3, "read", OBJECT_FD, BY_FILE},
	{4, "write", OBJECT_FD, BY_FILE},
	{54, "ioctl", OBJECT_FD, BY_ONE},
	{142, "select", OBJECT_NONE, BY_ANY},
	{168, "poll", OBJECT_ADDRESS, BY_ANY},
	{118, "fsync", OBJECT_FD, BY_DISK},
	{148, "fdatasync", OBJECT_FD, BY_DISK},
	{158, "sched_yield", OBJECT_NONE, BY_ONE},
	{29, "pause", OBJECT_NONE, BY_ANY},
	{177, "rt_sigtimedwait", OBJECT_NONE, BY_ANY},
	{179, "rt_sigsuspend", OBJECT_NONE, BY_ANY},
	{114, "wait4", OBJECT_NONE, BY_ONE},
	{5, "open", OBJECT_NONE, BY_OPEN},
	{6, "close", OBJECT_NONE, BY_CLOSE},
	{45, "brk", OBJECT_NONE, BY_MEMORY},
	{91, "munmap", OBJECT_NONE, BY_MEMORY},
	{125, "mprotect", OBJECT_NONE, BY_MEMORY},
	{163, "mremap", OBJECT_NONE, BY_MEMORY},
	{192, "mmap", OBJECT_NONE, BY_MEMORY},
	{120, "clone", OBJECT_NONE, BY_THREAD},
	{435, "clone3", OBJECT_NONE, BY_THREAD},
	{449, "futex_waitv", OBJECT_ADDRESS, BY_ONE},
	{455, "futex_wait", OBJECT_ADDRESS, BY_ONE},
	{145, "readv", OBJECT_FD, BY_FILE},
	{146, "writev", OBJECT_FD, BY_FILE},
	{417, "recvmmsg", OBJECT_FD, BY_ONE},
	{55, "fcntl", OBJECT_FD, BY_ONE},
	{221, "fcntl", OBJECT_FD, BY_ONE},
	{143, "flock", OBJECT_FD, BY_ONE},
	{426, "io_uring_enter", OBJECT_FD, BY_ANY},
	{419, "mq_timedreceive", OBJECT_FD, BY_ONE},
	{418, "mq_timedsend", OBJECT_FD, BY_ONE},
	{420, "semtimedop", OBJECT_FD, BY_ONE},
	{36, "sync", OBJECT_NONE, BY_DISK},
	{144, "msync", OBJECT_NONE, BY_DISK},
	{180, "pread64", OBJECT_FD, BY_DISK},
	{181, "pwrite64", OBJECT_FD, BY_DISK},
	{93, "ftruncate", OBJECT_FD, BY_DISK},
	{194, "ftruncate", OBJECT_FD, BY_DISK},
	{10, "unlink", OBJECT_NONE, BY_DISK},
	{38, "rename", OBJECT_NONE, BY_DISK},
	{150, "mlock", OBJECT_NONE, BY_MEMORY},
};

static const struct {
	const struct known_call *calls;
	size_t count;
} tables[] = {{native, sizeof(native) / sizeof(native[0])}, {narrow, sizeof(narrow) / sizeof(narrow[0])}};

static const struct known_call *find(const struct blocking_call *call)
{
	for (size_t i = 0; i < tables[call->table].count; i++) {
		if (tables[call->table].calls[i].number == call->number)
			return &tables[call->table].calls[i];
	}
	return NULL;
}

const char *blocking_call_name(const struct blocking_call *call, char *room, size_t size)
{
	const struct known_call *known = find(call);

	if (known)
		return known->name;
	snprintf(room, size, "syscall %lld", (long long)call->number);
	return room;
}

int64_t blocking_call_number(const char *name)
{
	for (size_t i = 0; i < tables[CALLS_NATIVE].count; i++) {
		if (!strcmp(native[i].name, name))
			return native[i].number;
	}
	return -1;
}

static bool has_name(const struct blocking_call *call, const char *name)
{
	const struct known_call *known = find(call);

	return known && !strcmp(known->name, name);
}

bool blocking_call_is_pause(const struct blocking_call *call)
{
	const struct known_call *known = find(call);

	return known && (known->object == OBJECT_CLOCK || known->object == OBJECT_SLEEP);
}

bool blocking_call_has_special_timer(const struct blocking_call *call)
{
	return has_name(call, "sched_yield") || has_name(call, "io_uring_enter");
}

bool blocking_call_continues(const struct blocking_call *call)
{
	return has_name(call, "restart_syscall");
}

static int futex_command(const struct blocking_call *call)
{
	return (int)call->arguments[1] & FUTEX_CMD_MASK;
}

bool blocking_call_can_wait(const struct blocking_call *call)
{
	const struct known_call *known = find(call);
	int command = futex_command(call);

	if (!known || known->object != OBJECT_FUTEX)
		return known;
	return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI ||
	       command == LOCK_PI2 || command == FUTEX_WAIT_REQUEUE_PI;
}

bool blocking_call_timed_out(const struct blocking_call *call, int64_t result)
{
	const struct known_call *known = find(call);

	if (result == -ETIMEDOUT || result == -ETIME)
		return true;
	if (known && (known->object == OBJECT_FUTEX || !strncmp(known->name, "futex", strlen("futex"))))
		return false; /* 0: another thread woke it */
	return result == 0 || result == -EAGAIN;
}

uint64_t blocking_call_object(const struct blocking_call *call)
{
	const struct known_call *known = find(call);

	if (!known)
		return 0;
	switch (known->object) {
	case OBJECT_FUTEX:
		/* The waiters of a condition variable of glibc are in two groups, each with its own futex. */
		return blocking_call_lock(call) == NO_LOCK ? call->arguments[0] & ~UINT64_C(7)
							   : call->arguments[0];
	case OBJECT_FD:
	case OBJECT_ADDRESS:
		return call->arguments[0];
	case OBJECT_CLOCK:
		return call->arguments[0] * 2 + (call->arguments[1] & TIMER_ABSTIME);
	case OBJECT_NONE:
	case OBJECT_SLEEP:
		break;
	}
	return 0;
}

int blocking_call_fd(const struct blocking_call *call)
{
	const struct known_call *known = find(call);

	return known && known->object == OBJECT_FD ? (int)call->arguments[0] : -1;
}

uint64_t blocking_call_place(const struct blocking_call *call)
{
	const struct known_call *known = find(call);

	if (known && known->object == OBJECT_CLOCK)
		return call->arguments[2];
	return known && known->object == OBJECT_SLEEP ? call->arguments[0] : 0;
}

enum lock_kind blocking_call_lock(const struct blocking_call *call)
{
	const struct known_call *known = find(call);
	int command = futex_command(call);

	if (!known || known->object != OBJECT_FUTEX)
		return NO_LOCK;
	if (command == FUTEX_LOCK_PI || command == LOCK_PI2)
		return LOCK_INHERITS;
	return (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) &&
			       (uint32_t)call->arguments[2] == CONTENDED
		       ? LOCK_PLAIN
		       : NO_LOCK;
}

int64_t blocking_call_rounds_ns(const struct blocking_call *call)
{
	bool whole_ms =
		has_name(call, "epoll_wait") || has_name(call, "epoll_pwait") || has_name(call, "poll");

	return whole_ms ? 2000000 : 0;
}

bool blocking_call_waits_for_signal(const struct blocking_call *call)
{
	return has_name(call, "rt_sigsuspend") || has_name(call, "pause");
}

bool blocking_call_is_futex(const struct blocking_call *call)
{
	return has_name(call, "futex");
}

bool blocking_call_waits_for_any(const struct blocking_call *call)
{
	const struct known_call *known = find(call);

	return known && known->ended == BY_ANY;
}

enum call_end blocking_call_end(const struct blocking_call *call)
{
	const struct known_call *known = find(call);

	return known ? known->ended : BY_ONE;
}

bool blocking_call_is_storage(const struct blocking_call *call)
{
	const struct known_call *known = find(call);

	return known && known->ended >= BY_DISK;
}

void blocking_calls_filter(enum call_table table, char filter[CALL_FILTER_MAX])
{
	size_t len = 0;

	filter[0] = '\0';
	for (size_t i = 0; i < tables[table].count && len < CALL_FILTER_MAX - 32; i++)
		len += (size_t)snprintf(filter + len, CALL_FILTER_MAX - len, "%sid==%ld", i ? "||" : "",
					tables[table].calls[i].number);
}

void blocking_calls_costly_filter(char filter[CALL_FILTER_MAX])
{
	size_t len = 0;

	filter[0] = '\0';
	for (size_t i = 0; i < tables[CALLS_NATIVE].count && len < CALL_FILTER_MAX / 2; i++) {
		const struct known_call *call = &tables[CALLS_NATIVE].calls[i];

		if (call->ended >= BY_DISK && call->ended != BY_CLOSE)
			len += (size_t)snprintf(filter + len, CALL_FILTER_MAX - len, "%sid==%ld",
						len ? "||" : "", call->number);
	}
}

void blocking_calls_events(char list[CALL_EVENTS_MAX])
{
	size_t len = 0;

	list[0] = '\0';
	for (size_t i = 0; i < tables[CALLS_NATIVE].count && len < CALL_EVENTS_MAX - 100; i++) {
		const char *name = tables[CALLS_NATIVE].calls[i].name;

		len += (size_t)snprintf(list + len, CALL_EVENTS_MAX - len,
					"syscalls/sys_enter_%s,syscalls/sys_exit_%s,", name, name);
	}
}
