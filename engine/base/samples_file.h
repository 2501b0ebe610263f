/* SPDX-License-Identifier: MIT */
/* The file of raw samples (docs/formats/stream.md, "Samples file"). */
#ifndef RTGAUGE_SAMPLES_FILE_H
#define RTGAUGE_SAMPLES_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/series.h"

/* Makes `folder`/samples-<series>.i64; NULL and errno where it cannot. */
FILE *samples_open(const char *folder, unsigned int series);

/* Writes the header; start_ns is known. A failure shows in the stream's error flag. */
void samples_begin(const struct series *s);

/* Writes what the header can only know at the end, and closes. false: not all is on disk. */
bool samples_close(struct series *s);

#endif
