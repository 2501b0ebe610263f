/* SPDX-License-Identifier: MIT */
/* The last line of a stream that could not go on (docs/formats/stream.md, `error`). */
#ifndef RTGAUGE_ERROR_H
#define RTGAUGE_ERROR_H

enum { STATUS_OK = 0, STATUS_USAGE = 2, STATUS_CANNOT_MEASURE = 3 };

/* Writes the error line to standard output; returns status, so that a caller can `return error_line(...)`. */
__attribute__((format(printf, 3, 4))) int error_line(int status, const char *code, const char *format, ...);

#endif
