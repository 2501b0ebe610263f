// SPDX-License-Identifier: MIT
#include "probes/watch/blocking_calls.h"

#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>

/* FUTEX_LOCK_PI2, which older headers lack. */
#define LOCK_PI2 13
/* The value that glibc and Rust's library write into a plain lock if a thread waits for it. */
#define CONTENDED 2

static const struct {
	long number;
	const char *name;
} known[] = {
	{SYS_clock_nanosleep, "clock_nanosleep"},
	{SYS_nanosleep, "nanosleep"},
	{SYS_futex, "futex"},
	{SYS_read, "read"},
	{SYS_write, "write"},
	{SYS_ppoll, "ppoll"},
	{SYS_pselect6, "pselect6"},
	{SYS_epoll_pwait, "epoll_pwait"},
	{SYS_recvfrom, "recvfrom"},
	{SYS_recvmsg, "recvmsg"},
	{SYS_sendto, "sendto"},
	{SYS_sendmsg, "sendmsg"},
	{SYS_accept4, "accept4"},
	{SYS_ioctl, "ioctl"},
	{SYS_rt_sigtimedwait, "rt_sigtimedwait"},
	{SYS_fsync, "fsync"},
	{SYS_fdatasync, "fdatasync"},
	{SYS_pread64, "pread64"},
	{SYS_pwrite64, "pwrite64"},
	{SYS_munmap, "munmap"},
	{SYS_mprotect, "mprotect"},
	{SYS_madvise, "madvise"},
	{SYS_openat, "openat"},
#ifdef SYS_clock_nanosleep_time64
	{SYS_clock_nanosleep_time64, "clock_nanosleep"},
	{SYS_futex_time64, "futex"},
	{SYS_ppoll_time64, "ppoll"},
	{SYS_pselect6_time64, "pselect6"},
#endif
#ifdef SYS_mmap
	{SYS_mmap, "mmap"},
#endif
#ifdef SYS_mmap2
	{SYS_mmap2, "mmap"},
#endif
#ifdef SYS_poll
	{SYS_poll, "poll"},
#endif
#ifdef SYS_select
	{SYS_select, "select"},
#endif
#ifdef SYS_epoll_wait
	{SYS_epoll_wait, "epoll_wait"},
#endif
};

const char *blocking_call_name(int64_t number, char *room, size_t size)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].number == number)
			return known[i].name;
	}
	snprintf(room, size, "syscall %lld", (long long)number);
	return room;
}

bool blocking_call_is_pause(const struct blocking_call *call)
{
#ifdef SYS_clock_nanosleep_time64
	if (call->number == SYS_clock_nanosleep_time64)
		return true;
#endif
	return call->number == SYS_clock_nanosleep || call->number == SYS_nanosleep;
}

enum lock_kind blocking_call_lock(const struct blocking_call *call)
{
	bool futex = call->number == SYS_futex;
	int command = (int)call->second & FUTEX_CMD_MASK;

#ifdef SYS_futex_time64
	futex |= call->number == SYS_futex_time64;
#endif
	if (!futex)
		return NO_LOCK;
	if (command == FUTEX_LOCK_PI || command == LOCK_PI2)
		return LOCK_INHERITS;
	return (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) && (uint32_t)call->third == CONTENDED
		       ? LOCK_PLAIN
		       : NO_LOCK;
}
