/* SPDX-License-Identifier: MIT */
/* Reads files whole, also those of /proc and /sys, which say their size is 0. Never hangs on a FIFO or a
 * device. */
#ifndef RTGAUGE_FILE_H
#define RTGAUGE_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct bytes {
	char *data; /* malloc'ed, with a NUL after the last byte */
	size_t len;
	bool more; /* the file goes on */
};

/* At most `max_len` bytes of a regular file. Returns 0 or an errno; EINVAL: not a regular file. */
int file_read(const char *path, size_t max_len, struct bytes *bytes);

/* At most `max_len` bytes of an open descriptor, from its position. */
int file_read_fd(int fd, size_t max_len, struct bytes *bytes);

#endif
