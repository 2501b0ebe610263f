/* SPDX-License-Identifier: MIT */
/* Reads whole files, even in /proc and /sys, where their size is 0. Never blocks on a FIFO or a device. */
#ifndef RTGAUGE_FILE_H
#define RTGAUGE_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct bytes {
	char *data; /* malloc'ed, with a NUL after the last byte */
	size_t len;
	bool more; /* the file is longer */
};

/* Reads at most `max_len` bytes of a regular file. Returns 0 or an errno; EINVAL if it is not a regular
 * file. */
int file_read(const char *path, size_t max_len, struct bytes *bytes);

/* Reads at most `max_len` bytes from a descriptor's position. */
int file_read_fd(int fd, size_t max_len, struct bytes *bytes);

#endif
