/* SPDX-License-Identifier: MIT */
/*
 * Lets one run at a time use a target. It uses flock(2) on a file that all processes of the machine see.
 * Root makes it, and every user may lock it, because flock needs no right to write (docs/security.md). The
 * lock ends with its process. Others wait in the kernel, which serves them in the order of arrival, whoever
 * they are. The holder writes its description into the file, or, if it may not, into its user's own file.
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
	int64_t pid;	  /* the guard's pid in its own PID namespace; 0: unknown */
	int64_t uid;	  /* the guard's user; -1: unknown */
	int64_t host_pid; /* the pid of the run that renews the guard's lease; 0: the run is not on this
			     machine */
	int64_t start, pid_namespace;
	int64_t lease_ns;
	int64_t heard_ns, ends_ns; /* When the holder's host was last heard from, and about when the holder
			       ends, on CLOCK_MONOTONIC; 0: unknown. */
};

struct machine_lock {
	int fd;	     /* -1: not open */
	int text_fd; /* the file for the description; -1: none can be written */
	bool held;
	dev_t above_dev; /* a file that this user may not lock, but must respect; above_ino 0: there is none
			  */
	ino_t above_ino;
	char seen[64]; /* the /proc/PID/fdinfo/FD in which the lock was found */
	char path[PATH_MAX];
};

/*
 * Opens the lock in the folder `dir`; NULL: /run/rtgauge if this user may lock there, else this user's own
 * folder. Returns 0 or the errno of `path`; EPERM if another user could hold or replace it.
 */
int machine_lock_open(struct machine_lock *lock, const char *dir);

/* Returns 0 if the lock is ours, EWOULDBLOCK if another process holds it. */
int machine_lock_try(struct machine_lock *lock);

/* Starts a child that waits until the lock is ours, and then ends with status 0. Returns its pid, or -1. */
pid_t machine_lock_wait(const struct machine_lock *lock);

/* Writes the holder's text. If the file cannot be written, the lock is kept but names nobody. */
void machine_lock_say(const struct machine_lock *lock, const struct holder *self);

/* Writes the holder's two times. */
void machine_lock_say_times(const struct machine_lock *lock, const struct holder *self);

/*
 * The holder's description of itself. If it has none, the process that the kernel names, as far as this user
 * may look into processes; `run` is then empty.
 */
void machine_lock_holder(struct machine_lock *lock, struct holder *holder);

/* Reads a holder's text, which may be incomplete. If anything is wrong, all members are empty. */
void machine_lock_parse(char *text, struct holder *holder);

/* Returns whether the holder's host has been silent for longer than a renewal takes. */
bool machine_lock_is_silent(const struct holder *holder, int64_t now_ns);

/* Returns the number of this process's PID namespace; 0: unknown. */
int64_t machine_lock_pid_namespace(void);

/* Releases the lock. */
void machine_lock_close(struct machine_lock *lock);

#endif
