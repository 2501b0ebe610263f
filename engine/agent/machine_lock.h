/* SPDX-License-Identifier: MIT */
/*
 * One run a target: flock(2) on a file that every process of the machine sees and only those may hold who
 * may write it (docs/security.md). It ends with its process. Whoever waits for it waits in the kernel, which
 * gives it in the order of arrival. The holder writes into the file who it is.
 */
#ifndef RTGAUGE_MACHINE_LOCK_H
#define RTGAUGE_MACHINE_LOCK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct holder {
	char run[129]; /* "" if it does not say */
	char label[257];
	int64_t pid; /* in its own PID namespace; 0: not known */
	int64_t start, pid_namespace;
	int64_t lease_ns;
	int64_t heard_ns, ends_ns; /* CLOCK_MONOTONIC: when its host was last heard of, about when it ends; 0:
				      not known */
};

struct machine_lock {
	int fd; /* -1: not open */
	bool held;
	bool writable;
	dev_t above_dev; /* the file that this user may not hold, and has to respect; above_ino 0: there is
			    none */
	ino_t above_ino;
	char path[PATH_MAX];
};

/*
 * Opens it in the folder `dir`; NULL: /run/rtgauge if this user may hold the lock there, else a folder of the
 * user's own. Returns 0 or an errno, then of `path`: EPERM if somebody else could hold or exchange it.
 */
int machine_lock_open(struct machine_lock *lock, const char *dir);

/* 0: it is ours; EWOULDBLOCK: another process holds it. */
int machine_lock_try(struct machine_lock *lock);

/* Starts a child that waits until the lock is ours, then ends with 0. Returns its number, or -1. */
pid_t machine_lock_wait(const struct machine_lock *lock);

/* Writes who holds it. A file that takes no more keeps the lock, and says nothing. */
void machine_lock_say(const struct machine_lock *lock, const struct holder *self);

/* Writes the two times of the holder. */
void machine_lock_say_times(const struct machine_lock *lock, const struct holder *self);

/* Who holds it, as it says itself. */
void machine_lock_holder(const struct machine_lock *lock, struct holder *holder);

/* Reads what a holder wrote, which may be torn; if anything is wrong all members are empty. */
void machine_lock_parse(char *text, struct holder *holder);

/* Its host has said nothing for longer than it takes to renew. */
bool machine_lock_is_silent(const struct holder *holder, int64_t now_ns);

/* The pid namespace of this process, as a number; 0: not known. */
int64_t machine_lock_pid_namespace(void);

/* Gives it up. */
void machine_lock_close(struct machine_lock *lock);

#endif
