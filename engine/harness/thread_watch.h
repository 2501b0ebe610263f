/* SPDX-License-Identifier: MIT */
/* Runs the watchdog (rt/watchdog.h) for a probe's measuring threads, and reports its findings. */
#ifndef RTGAUGE_THREAD_WATCH_H
#define RTGAUGE_THREAD_WATCH_H

#include "harness/harness.h"

/* If harness_watch was called, adds the thread with this index, which has begun. */
void thread_watch_add(unsigned int index, struct harness_thread *t);

/* Reports that the drain lives. */
void thread_watch_drained(void);

/* Writes a mark for each thread that does not get its CPU, once, with the holder of the CPU. */
void thread_watch_tell(struct harness *h);

/* Ends the watchdog. */
void thread_watch_end(void);

/* Returns why the watchdog ended the probe; NULL: it did not end it. */
const char *thread_watch_why(void);

/* Returns whether the watchdog stopped the threads because one is held, and cannot end by itself. */
bool thread_watch_is_over(void);

#endif
