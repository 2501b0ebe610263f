/* SPDX-License-Identifier: MIT */
/*
 * Frames for people who watch the tire move (docs/live.md): the positions of some nodes after a step. The
 * last thread of a step copies them, if a frame is wanted and the next release is far enough away. The
 * thread that drains writes them to the stream.
 */
#ifndef RTGAUGE_TIRE_FRAME_H
#define RTGAUGE_TIRE_FRAME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/json.h"
#include "ext/tire/engine/run.h"

#define TIRE_FRAME_NS (NS_PER_S / 60) /* shortest time between two frames */

enum tire_frame_state { FRAME_NONE, FRAME_WANTED, FRAME_FULL };

/* The thread that drains sets WANTED; the last thread of a step sets FULL. Between the two, the positions
 * belong to the other thread. */
extern _Atomic enum tire_frame_state tire_frame_state;

/* Allocates a frame; returns false if there is no memory. */
bool tire_frame_make(const struct tire_plan *plan);

bool tire_frame_copy(int64_t step, int64_t time_ns, int64_t now_ns, int64_t until_ns);

/*
 * The last thread of the measured step number `step` (from 1) calls this, while all others wait and after
 * everything that is measured. time_ns: the release of the step. until_ns: the next release, INT64_MAX if
 * there is none. Returns true if a frame was copied, which took time.
 */
static inline bool tire_frame_offer(int64_t step, int64_t time_ns, int64_t now_ns, int64_t until_ns)
{
	if (__builtin_expect(atomic_load_explicit(&tire_frame_state, memory_order_acquire) != FRAME_WANTED,
			     1))
		return false;
	return tire_frame_copy(step, time_ns, now_ns, until_ns);
}

/* The thread that drains calls this. Writes a full frame, and requests the next one if somebody watches.
 * Returns how long to wait before the next call; idle_ns if nobody watches. */
int64_t tire_frame_exchange(struct json *j, int64_t idle_ns);

struct tire_frame_counts {
	int64_t copied, late; /* late: ended after the next release, so it may have delayed a step */
};

/* Called after the threads have ended. */
const struct tire_frame_counts *tire_frame_counted(void);

#endif
