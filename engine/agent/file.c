// SPDX-License-Identifier: MIT
#include "agent/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int file_read_fd(int fd, size_t max_len, struct bytes *bytes)
{
	size_t room = 4096;

	*bytes = (struct bytes){.data = malloc(room + 1)};
	while (bytes->data) {
		ssize_t n;

		if (bytes->len == room) {
			char *bigger = realloc(bytes->data, room * 2 + 1);

			if (!bigger)
				break;
			bytes->data = bigger;
			room *= 2;
		}
		n = read(fd, bytes->data + bytes->len, room - bytes->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int error = errno;

			free(bytes->data);
			bytes->data = NULL;
			return error;
		}
		bytes->len += (size_t)n;
		bytes->more = bytes->len > max_len;
		if (bytes->more)
			bytes->len = max_len;
		bytes->data[bytes->len] = '\0';
		if (!n || bytes->more)
			return 0;
	}
	free(bytes->data);
	bytes->data = NULL;
	return ENOMEM;
}

int file_read(const char *path, size_t max_len, struct bytes *bytes)
{
	struct stat st;
	int fd, error;

	bytes->data = NULL;
	/* Check before opening, because opening a device may have an effect. */
	if (stat(path, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return EINVAL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno;
	if (fstat(fd, &st))
		error = errno;
	else if (!S_ISREG(st.st_mode))
		error = EINVAL;
	else
		error = file_read_fd(fd, max_len, bytes);
	close(fd);
	return error;
}
