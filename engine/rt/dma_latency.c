// SPDX-License-Identifier: MIT
#include "rt/dma_latency.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int dma_latency_hold(int64_t latency_us)
{
	int32_t wish = (int32_t)latency_us;
	int fd = open("/dev/cpu_dma_latency", O_RDWR | O_CLOEXEC);
	int error;

	if (fd < 0)
		return errno;
	if (write(fd, &wish, sizeof(wish)) == (ssize_t)sizeof(wish))
		return 0; /* fd stays open: closing it withdraws the request */
	error = errno;
	close(fd);
	return error;
}
