/* SPDX-License-Identifier: MIT */
/* The watchdog (rt/watchdog.h) over the measuring threads of a probe, and what it found. */
#ifndef RTGAUGE_THREAD_WATCH_H
#define RTGAUGE_THREAD_WATCH_H

#include "harness/harness.h"

/* The thread with this index, which has begun, is watched once harness_watch is called. */
void thread_watch_add(unsigned int index, struct harness_thread *t);

/* The drain lives. */
void thread_watch_drained(void);

/* Writes a mark, once for each thread that does not get its CPU: who holds it. */
void thread_watch_tell(struct harness *h);

/* The probe has ended: the watchdog goes. */
void thread_watch_end(void);

/* Why the watchdog ended the probe; NULL: it did not. */
const char *thread_watch_why(void);

/* The watchdog told the threads to end, because one that is held cannot end by itself. */
bool thread_watch_is_over(void);

#endif
