/* SPDX-License-Identifier: MIT */
/*
 * Settings of one thread, by names like those of files: `thread:TID:START:policy` ("fifo 50", "other") and
 * `thread:TID:START:affinity` ("0-3"). START is its start time, so that another thread which has the number
 * later is left alone.
 */
#ifndef RTGAUGE_SETTING_THREAD_H
#define RTGAUGE_SETTING_THREAD_H

#include <stdbool.h>

bool setting_thread_is(const char *name);

/* 0 or an errno: ESRCH: the thread is gone; ENOTSUP: a deadline policy, which these words cannot say.
 * *value is malloc'ed. */
int setting_thread_read(const char *name, char **value);

/* 0 or an errno; EINVAL: no such value. */
int setting_thread_write(const char *name, const char *value);

#endif
