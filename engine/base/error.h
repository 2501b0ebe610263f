/* SPDX-License-Identifier: MIT */
/* Writes the last line of a stream that cannot continue (docs/formats/stream.md, `error`). */
#ifndef RTGAUGE_ERROR_H
#define RTGAUGE_ERROR_H

#include "base/json.h"

enum { STATUS_OK = 0, STATUS_USAGE = 2, STATUS_CANNOT_MEASURE = 3 };

/* Writes the error line to standard output; returns status, so that a caller can `return error_line(...)`. */
__attribute__((format(printf, 3, 4))) int error_line(int status, const char *code, const char *format, ...);

#define usage_error(...) error_line(STATUS_USAGE, "usage", __VA_ARGS__)

/*
 * The same, with facts from which the host explains the error. Between the two calls, the caller writes
 * the members of `detail`. The message says what was refused, but not why. error: an errno, whose name is
 * in `detail`; 0: none.
 */
__attribute__((format(printf, 4, 5))) void error_begin(struct json *j, const char *code, int error,
						       const char *format, ...);
int error_end(struct json *j, int status);

/*
 * Reports that this machine or runtime lacks something. The message is the reason, and `detail` has the
 * missing thing and the remedy.
 */
__attribute__((format(printf, 5, 6))) int error_lacks(int status, const char *code, const char *what,
						      const char *remedy, const char *format, ...);

/* Returns the name of an errno, such as "EACCES"; "E<number>" for a rare one. (musl has no
   strerrorname_np.) */
const char *errname(int error);

#endif
