/* SPDX-License-Identifier: MIT */
/* The words that the host says on standard input: go, stop; and signals, which mean stop. */
#ifndef RTGAUGE_COMMANDS_H
#define RTGAUGE_COMMANDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Set by `stop`, by the end of input and by SIGINT, SIGTERM, SIGHUP. */
extern _Atomic bool commands_stopped;

/* Installs the signal handlers. listen: standard input is read; else only signals stop. */
void commands_begin(bool listen);

/* Waits for `go`. false: stopped before. */
bool commands_wait_go(void);

/* Sleeps at most timeout_ns or until told to stop. */
void commands_wait(int64_t timeout_ns);

#endif
