/* SPDX-License-Identifier: MIT */
/*
 * A second measured process. It has the engine's policy on a CPU of its own, and shares only memory from
 * an earlier peer_process_memory. It ends with the engine, however the engine ends.
 */
#ifndef RTGAUGE_HARNESS_PEER_PROCESS_H
#define RTGAUGE_HARNESS_PEER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct peer_process {
	pid_t pid; /* 0: there is none */
	bool started;
	int cpu;
	char died[96];	  /* how it ended by itself; empty: it did not */
	int64_t switches; /* switches to Linux during the measurement, known after it has ended; -1: unknown
			   */
};

/* Returns zeroed memory that both processes share; NULL: none is left. It is never freed. */
void *peer_process_memory(size_t size);

/*
 * Starts the process on this CPU, before any thread starts and before this process joins a co-kernel. The
 * new process calls prepare(arg), which returns 0 or an errno, and then work(arg), which does not return.
 * In between, when it is ready, this function returns. Returns 0, or the exit status after an `error`
 * line.
 */
int peer_process_start(struct peer_process *peer, int cpu, int (*prepare)(void *arg), void (*work)(void *arg),
		       void *arg);

/* The peer's measurement begins now. */
void peer_process_go(struct peer_process *peer);

/* Returns whether it still runs. If not, `died` says how it ended. */
bool peer_process_lives(struct peer_process *peer);

void peer_process_end(struct peer_process *peer);

#endif
