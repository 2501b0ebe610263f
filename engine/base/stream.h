/* SPDX-License-Identifier: MIT */
/* Writes the lines of docs/formats/stream.md that all probes have. */
#ifndef RTGAUGE_STREAM_H
#define RTGAUGE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/json.h"
#include "base/options.h"

#define STREAM_VERSION 2

enum severity { SEVERITY_NOTE, SEVERITY_DOUBTFUL, SEVERITY_INVALID };

/* Buffers standard output, and begins the stream. */
void stream_begin(struct json *j);

/* Writes the common part of hello. The caller adds its own members, and closes the object and the line. */
void stream_hello(struct json *j, const char *probe, const struct option_entry *table);

/* Writes a mark. series < 0: on the whole probe. */
__attribute__((format(printf, 5, 6))) void
stream_mark(struct json *j, const char *name, enum severity severity, int series, const char *format, ...);

/*
 * Writes a line with a result that is not a distribution. The caller writes its labels, closes that
 * object, opens and writes `values`, and ends the line with stream_result_end.
 */
void stream_result(struct json *j, const char *name);
void stream_result_end(struct json *j);

void stream_end(struct json *j, const char *reason, int status);

/* Returns false if writing to standard output failed (a closed pipe, a full disk). */
bool stream_written(void);

#endif
