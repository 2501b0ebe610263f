/* SPDX-License-Identifier: MIT */
/*
 * How long ago the recording in a spool began. It counts on over restarts and boots: within a boot by
 * CLOCK_BOOTTIME, from one boot to the next by the wall clock.
 */
#ifndef RTGAUGE_RECORDER_AGE_H
#define RTGAUGE_RECORDER_AGE_H

#include <stdint.h>

#include "ext/recorder/engine/spool.h"

struct age {
	int64_t known_ns, at_ns; /* the age at this time (CLOCK_BOOTTIME) */
};

/* Reads the age, which is 0 in a new folder. boot: the ID of this boot. */
void age_read(struct age *age, const struct spool *spool, const char *boot);
int64_t age_now(const struct age *age);

/* Writes the age down. If the disk refuses that, the file is older, and the wall clock counts for longer. */
void age_write(struct age *age, struct spool *spool, const char *boot);

#endif
