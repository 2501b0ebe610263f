/* SPDX-License-Identifier: MIT */
/*
 * Copies the moments around the largest latencies (docs/formats/stream.md, `moment`). The kernel records
 * its events in an instance of tracefs that the caller makes and removes. The thread that drains copies
 * the events around a latency; measuring threads do nothing. The cost of the events is measured first, in
 * stretches of the warm-up that are alternately with and without events.
 */
#ifndef RTGAUGE_EXPLAIN_H
#define RTGAUGE_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/options.h"
#include "base/series.h"
#include "trace/page_store.h"

struct explain_options {
	const char *instance, *events;
	int64_t above_ns, buffer_kb, cost_ns, every_ns;
};

extern struct explain_options explain_options;

/* The options for the table of a probe whose latencies can be explained. */
extern const struct option_entry explain_options_table[];

/* A sleep within a latency or a response, and its system call; empty: not in a call. */
struct held {
	int64_t since_ns;
	char call[24];
};

#define HELD_MAX 4
#define TRIGGERED_NS (NS_PER_S / 10)

struct harness;

/* The thread whose latencies a series has. */
struct explained {
	int cpu;
	pid_t tid;
	int64_t timer_ns; /* the expiry of its timer, if it set it for later than the release; else 0 */
	unsigned int held_count;
	struct held held[HELD_MAX];
};
/* Sets the thread. Returns false if the latencies of this series are not explained. */
typedef bool (*explain_who)(const struct harness *h, const struct series *s, struct explained *who);

/* Returns the exit status after an `error` line if a word in the options is wrong, else 0. */
int explain_check(void);

/* Returns the time that is added to the warm-up. */
int64_t explain_warm_up_ns(void);

/* Sets the lowest and highest task numbers of the watched program. These tasks' system calls, page faults and
 * waits for the lock of the memory map are recorded. It may be called again when tasks begin. */
void explain_program(pid_t first, pid_t last);

/*
 * Rings that a probe reads itself, with all default events besides its own: explaining then needs no rings of
 * its own. An event that both need would cost twice otherwise. Where there are many CPUs, reading the events
 * of all of them would take the probe too long.
 */
struct explain_rings {
	const char *name; /* of the instance of tracefs */
	int instance;
	struct page_store *stores; /* what was read: one for each CPU */
	unsigned int count;
	bool (*has)(void *user, const char *event); /* whether the probe records the event itself */
	void (*read)(void *user);		    /* reads what has come */
	void *user;
};

/* Returns whether explaining can take its events from the probe's rings, with the options that were given,
 * and takes its instance then: a probe should not record events that nobody explains. */
bool explain_can_share(void);

/* Takes the events from these rings; before explain_open. */
void explain_share(const struct explain_rings *rings);

/* Starts recording. If that fails, it is reported later, and nothing is explained. */
void explain_open(explain_who who, const struct harness *h);

/* Writes `trace_formats`, or a mark that nothing is explained. Writes nothing if explaining is off. */
void explain_announce(struct json *j);

/* The probe begins. The warm-up, without the part that measures the cost, ends at usual_ns. */
void explain_go(int64_t usual_ns);

/* The longest time between two looks at the rings. */
int64_t explain_pause_ns(int64_t pause_ns);

/* Returns whether the rings should be looked at as often as usual, because many latencies come at once, or
 * because the kernel overwrote the events of one within the last minute. */
bool explain_hurries(int64_t now_ns);

/* For a thread that slept until another thread woke it: the trace also shows what the waker did. inverted:
 * the waker released a lock and has a lower priority. */
void explain_sleep(const struct series *s, int64_t from_ns, int64_t slept_ns, bool inverted,
		   const struct explained *who);

/* Keeps the events of TRIGGERED_NS before time_ns and after it, as soon as they have come. number: the
 * host's; 0: the program has ended. */
void explain_trigger(const struct series *s, int64_t time_ns, int64_t number, const struct explained *who);

/* Call after samples were taken: copies the moments of the samples that are worth it. */
void explain_take(struct json *j);

/* Ends. Writes `stretch` lines, `symbols`, and a `result`. */
void explain_end(struct json *j);

#endif
