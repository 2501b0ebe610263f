/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_CLOCK_H
#define RTGAUGE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

static inline int64_t timespec_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * NS_PER_S + t->tv_nsec;
}

static inline struct timespec ns_timespec(int64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

static inline int64_t clock_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return timespec_ns(&now);
}

/* Sleeps for this long; a signal may end it earlier. */
static inline void clock_pause_ns(int64_t ns)
{
	struct timespec pause = ns_timespec(ns);

	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

#endif
