/* SPDX-License-Identifier: MIT */
/* The file of a tire's final positions and velocities (ext/tire/README.md). */
#ifndef RTGAUGE_TIRE_STATE_FILE_H
#define RTGAUGE_TIRE_STATE_FILE_H

#include "ext/tire/engine/run.h"

/* Called after the threads have ended. Returns false with errno. */
bool tire_state_write(const char *path, const struct tire_plan *plan, int64_t steps);

#endif
