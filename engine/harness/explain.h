/* SPDX-License-Identifier: MIT */
/*
 * Moments around the largest latencies (docs/formats/stream.md, `moment`): the kernel records its events in
 * an instance of tracefs that somebody else makes and removes; what it recorded around a latency is copied by
 * the thread that drains. Measuring threads do nothing for it. What it costs them is measured before: in
 * stretches of the warm-up, by turns with events and without.
 */
#ifndef RTGAUGE_EXPLAIN_H
#define RTGAUGE_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "base/options.h"
#include "base/series.h"

struct explain_options {
	const char *instance, *events;
	int64_t above_ns, buffer_kb, cost_ns;
};

extern struct explain_options explain_options;

/* For the table of a probe that can be explained. */
extern const struct option_entry explain_options_table[];

/* A sleep within a latency or a response, and the system call in which it was; empty: in none. */
struct held {
	int64_t since_ns;
	char call[24];
};

#define HELD_MAX 4

struct harness;

/* Whose latencies a series has. */
struct explained {
	int cpu;
	pid_t tid;
	unsigned int held_count;
	struct held held[HELD_MAX];
};
/* false: the latencies of this series are not explained. */
typedef bool (*explain_who)(const struct harness *h, const struct series *s, struct explained *who);

/* A word of the options that is wrong: the exit status after an `error` line; 0: none. */
int explain_check(void);

/* What the warm-up is longer by. */
int64_t explain_warm_up_ns(void);

/* The numbers of the first and the last task of the program that is watched: the waits for the lock of its
 * memory are recorded. May be called again as tasks begin. */
void explain_program(pid_t first, pid_t last);

/* Has the kernel record. If it cannot, that is told later and nothing is explained. */
void explain_open(explain_who who, const struct harness *h);

/* Writes `trace_formats`, or the mark that nothing is explained; nothing where it was not asked for. */
void explain_announce(struct json *j);

/* The probe begins; its warm-up without the part that measures the cost ends at usual_ns. */
void explain_go(int64_t usual_ns);

/* The longest pause between two times that the rings are looked at. */
int64_t explain_pause_ns(int64_t pause_ns);

/* Of a thread that slept until another one woke it: what that one did meanwhile is in the trace as well.
 * inverted: it gave back a lock, and has a lower priority. */
void explain_sleep(const struct series *s, int64_t from_ns, int64_t slept_ns, bool inverted,
		   const struct explained *who);

/* After samples were taken: copies the moments of those that are worth it. */
void explain_take(struct json *j);

/* Ends it: `stretch` lines, `symbols`, `result`. */
void explain_end(struct json *j);

#endif
