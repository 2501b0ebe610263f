/* SPDX-License-Identifier: MIT */
/* The file of raw samples (docs/formats/stream.md, "Samples file"). */
#ifndef RTGAUGE_SAMPLES_FILE_H
#define RTGAUGE_SAMPLES_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/series.h"

/* Makes `folder`/samples-<series>.i64. Returns NULL with errno on failure. */
FILE *samples_open(const char *folder, unsigned int series);

/* Writes the header, for which start_ns must be known. A failure sets the stream's error flag. */
void samples_begin(const struct series *s);

/* Writes the part of the header that is known only at the end, and closes the file. Returns false if not
 * everything is on disk. */
bool samples_close(struct series *s);

#endif
