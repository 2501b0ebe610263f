/* SPDX-License-Identifier: MIT */
/* The options of the probe wakeup in both spaces, except the shared ones. */
#ifndef RTGAUGE_WAKEUP_OPTIONS_H
#define RTGAUGE_WAKEUP_OPTIONS_H

#include <stdint.h>

struct wakeup_options {
	int64_t interval_ns, stop_at_ns, window_ns;
	int timer, phase;     /* in user space */
	int space;	      /* enum space */
	const char *instance; /* in kernel space */
};

/* Constant after harness_run has read the options. */
extern struct wakeup_options wakeup_options;

#endif
