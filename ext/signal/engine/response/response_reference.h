/* SPDX-License-Identifier: MIT */
/*
 * The responses of the probe response by the time stamps of the wire's kernel module (signal/wire.h), from
 * the stimulus on the wire to the answer on the wire, as an oscilloscope would show them. Also how far the
 * master's own figures differ from these.
 */
#ifndef RTGAUGE_RESPONSE_REFERENCE_H
#define RTGAUGE_RESPONSE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/series.h"
#include "ext/signal/engine/response/kernel_slave.h"
#include "ext/signal/engine/response/master.h"

enum response_reference_series { WIRE_RESPONSE, DIFFERENCE, RESPONSE_REFERENCE_SERIES };

struct response_reference {
	struct series *series; /* RESPONSE_REFERENCE_SERIES of them */
	int64_t timeout_ns;    /* least response time of a lost answer */
	int64_t interval_ns;   /* time from one stimulus to the next; 0: random */
	struct kernel_slave
		*slave; /* the slave whose interrupt latency it shows; NULL: the slave is in user space */

	struct stimulus *waiting; /* stimuli that wait until the wire has recorded them */
	uint64_t taken, put;
	int64_t matched, unmatched;
};

/* Returns false if there is no memory. */
bool response_reference_make(struct response_reference *r, int cpu);

/* Takes a finished stimulus. */
void response_reference_add(struct response_reference *r, const struct stimulus *stimulus, struct json *j);

/* Compares the stimuli that the wire has recorded; at the last call, all stimuli. */
void response_reference_take(struct response_reference *r, bool last, struct json *j);

#endif
