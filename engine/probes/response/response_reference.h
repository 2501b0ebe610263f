/* SPDX-License-Identifier: MIT */
/*
 * The responses of the probe response as the wire's kernel module time-stamped them (signal/wire.h), from the
 * stimulus on the wire to the answer on the wire: what an oscilloscope would show; and how far the master's
 * own figures are from these.
 */
#ifndef RTGAUGE_RESPONSE_REFERENCE_H
#define RTGAUGE_RESPONSE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/series.h"
#include "probes/response/kernel_slave.h"
#include "probes/response/master.h"

enum response_reference_series { WIRE_RESPONSE, DIFFERENCE, RESPONSE_REFERENCE_SERIES };

struct response_reference {
	struct series *series;	    /* RESPONSE_REFERENCE_SERIES of them */
	int64_t timeout_ns;	    /* what a lost answer took at least */
	int64_t interval_ns;	    /* from one stimulus to the next; 0: drawn */
	struct kernel_slave *slave; /* whose interrupt latency is known by it; NULL: it is in user space */

	struct stimulus *waiting; /* for the wire to have recorded them */
	uint64_t taken, put;
	int64_t matched, unmatched;
};

/* false: there is not the memory. */
bool response_reference_make(struct response_reference *r, int cpu);

/* A stimulus is over. */
void response_reference_add(struct response_reference *r, const struct stimulus *stimulus, struct json *j);

/* Compares what the wire has recorded by now; at the last all of it. */
void response_reference_take(struct response_reference *r, bool last, struct json *j);

#endif
