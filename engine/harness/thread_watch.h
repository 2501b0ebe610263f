/* SPDX-License-Identifier: MIT */
/* Runs the watchdog (rt/watchdog.h) over the measuring threads of a probe, and reports what it found. */
#ifndef RTGAUGE_THREAD_WATCH_H
#define RTGAUGE_THREAD_WATCH_H

#include "harness/harness.h"

/* Adds the thread with this index, which has begun, if harness_watch was called. */
void thread_watch_add(unsigned int index, struct harness_thread *t);

/* Reports that the drain lives. */
void thread_watch_drained(void);

/* Writes a mark, once for each thread that does not get its CPU: who holds it. */
void thread_watch_tell(struct harness *h);

/* Ends the watchdog. */
void thread_watch_end(void);

/* Returns why the watchdog ended the probe; NULL: it did not. */
const char *thread_watch_why(void);

/* Whether the watchdog stopped the threads, because one that is held cannot end by itself. */
bool thread_watch_is_over(void);

#endif
