/* SPDX-License-Identifier: MIT */
/* The responses of the probe response as the drain knows them: its samples, split into parts. */
#ifndef RTGAUGE_RESPONSE_RESPONSES_H
#define RTGAUGE_RESPONSE_RESPONSES_H

#include <stdint.h>

#include "base/series.h"
#include "ext/signal/engine/response/master.h"
#include "ext/signal/engine/response/parts.h"
#include "ext/signal/engine/response/slave.h"

struct response_reference;

struct responses {
	struct series *series;
	struct response_reference *reference; /* NULL: there is no reference */
	struct parts *parts;		      /* NULL: they are not split */
	struct answer held;		      /* the slave's note that was taken last */
};

/* Feeds the series with everything since the last call, from the stimulus to the answer. slave: notes its
 * answers, if they are split. timeout_ns: the least time of a lost answer. */
void responses_take_stimuli(struct responses *r, struct master *master, struct slave *slave,
			    int64_t timeout_ns, struct json *j);

/* The same for a slave alone, from the edge that it saw to its answer. */
void responses_take_answers(struct responses *r, struct slave *slave, struct json *j);

#endif
