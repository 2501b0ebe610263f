/* SPDX-License-Identifier: MIT */
/* The options of the probe wakeup in both spaces, besides those that probes share. */
#ifndef RTGAUGE_WAKEUP_OPTIONS_H
#define RTGAUGE_WAKEUP_OPTIONS_H

#include <stdint.h>

struct wakeup_options {
	int64_t interval_ns, stop_at_ns, window_ns;
	int timer, phase;     /* in user space */
	int space;	      /* enum space */
	const char *instance; /* in kernel space */
};

/* Constant once harness_run has read it. */
extern struct wakeup_options wakeup_options;

#endif
