// SPDX-License-Identifier: MIT
#include "signal/loop.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define AT_ONCE 64

int loop_check(const char *rest, enum path_role role, const char *name)
{
	if (*rest)
		return error_line(STATUS_USAGE, "path", "--path %s takes nothing behind it, and has '%.60s'",
				  name, rest);
	if (role != PATH_BOTH)
		return error_line(
			STATUS_USAGE, "path",
			"--path %s is within one engine: use --role both, or for two engines --path udp:HOST:PORT or gpio:CHIP:LINES",
			name);
	return 0;
}

int loop_refused(const char *name)
{
	return error_line(STATUS_CANNOT_MEASURE, "method", "there is no %s here (%s); choose another --path",
			  name, strerror(errno));
}

int loop_send(struct path_end *end, int64_t number)
{
	return write(end->out, &number, sizeof(number)) < 0 ? errno : 0;
}

int loop_receive(struct path_end *end, struct edge *edge)
{
	int64_t numbers[AT_ONCE];
	ssize_t len = read(end->in, numbers, sizeof(numbers));

	if (len < (ssize_t)sizeof(numbers[0]))
		return len < 0 ? errno : EPIPE;
	edge->count = (unsigned int)((size_t)len / sizeof(numbers[0]));
	edge->number = numbers[edge->count - 1];
	edge->time_ns = 0;
	return 0;
}
