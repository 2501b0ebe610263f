/* SPDX-License-Identifier: MIT */
/*
 * Lets one run at a time use a target: flock(2) on a file that all processes of the machine see, and only
 * those that may write it can lock (docs/security.md). The lock ends with its process. Waiting processes
 * wait in the kernel, which serves them in the order of arrival. The holder writes into the file who it is.
 */
#ifndef RTGAUGE_MACHINE_LOCK_H
#define RTGAUGE_MACHINE_LOCK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct holder {
	char run[129]; /* "" if unknown */
	char label[257];
	int64_t pid; /* in its own PID namespace; 0: unknown */
	int64_t start, pid_namespace;
	int64_t lease_ns;
	int64_t heard_ns, ends_ns; /* CLOCK_MONOTONIC: when its host was last heard from, and about when it
				      ends; 0: unknown */
};

struct machine_lock {
	int fd; /* -1: not open */
	bool held;
	bool writable;
	dev_t above_dev; /* a file that this user may not lock, but must respect; above_ino 0: none */
	ino_t above_ino;
	char path[PATH_MAX];
};

/*
 * Opens the lock in the folder `dir`; NULL: /run/rtgauge if this user may lock there, else the user's own
 * folder. Returns 0 or the errno of `path`; EPERM if another user could hold or replace it.
 */
int machine_lock_open(struct machine_lock *lock, const char *dir);

/* Returns 0 if the lock is ours, EWOULDBLOCK if another process holds it. */
int machine_lock_try(struct machine_lock *lock);

/* Starts a child that waits until the lock is ours, then ends with 0. Returns its pid, or -1. */
pid_t machine_lock_wait(const struct machine_lock *lock);

/* Writes the holder. If the file cannot be written, the lock is kept but names nobody. */
void machine_lock_say(const struct machine_lock *lock, const struct holder *self);

/* Writes the two times of the holder. */
void machine_lock_say_times(const struct machine_lock *lock, const struct holder *self);

/* The holder, as it describes itself. */
void machine_lock_holder(const struct machine_lock *lock, struct holder *holder);

/* Reads a holder's text, which may be incomplete; all members are empty if anything is wrong. */
void machine_lock_parse(char *text, struct holder *holder);

/* Returns whether its host has been silent for longer than a renewal takes. */
bool machine_lock_is_silent(const struct holder *holder, int64_t now_ns);

/* Returns the number of this process's PID namespace; 0: unknown. */
int64_t machine_lock_pid_namespace(void);

/* Releases the lock. */
void machine_lock_close(struct machine_lock *lock);

#endif
