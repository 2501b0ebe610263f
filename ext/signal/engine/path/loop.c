// SPDX-License-Identifier: MIT
/* The signal paths within one machine and one engine, by kind. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "ext/signal/engine/path/path.h"

#define AT_ONCE 64

int loop_check(const char *rest, enum path_role role, const char *name)
{
	if (*rest)
		return error_line(STATUS_USAGE, "path", "give --path %s alone, without '%.60s'", name, rest);
	if (role != PATH_BOTH)
		return error_line(
			STATUS_USAGE, "path",
			"--path %s connects only two processes of one engine; give --role both, or, for two "
			"engines, --path udp:HOST:PORT or gpio:CHIP:LINES",
			name);
	return 0;
}

int loop_refused(const char *name)
{
	return error_lacks(STATUS_CANNOT_MEASURE, "method", name, "choose another --path",
			   "this machine does not support %s (%s)", name, strerror(errno));
}

/* Edges as messages with their numbers: a message is written to `out`, and all messages that have come are
   read from `in`. */
static int send_number(struct path_end *end, int64_t number)
{
	return write(end->out, &number, sizeof(number)) < 0 ? errno : 0;
}

static int receive_numbers(struct path_end *end, struct edge *edge)
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

/* loop:eventfd: an edge increments a counter in the kernel, and the waiting task takes the count. */

static int open_eventfd(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
{
	int status = loop_check(rest, role, path_eventfd.name);

	if (status)
		return status;
	ends[PATH_MASTER].out = ends[PATH_SLAVE].in = eventfd(0, EFD_CLOEXEC);
	if (both_ways)
		ends[PATH_SLAVE].out = ends[PATH_MASTER].in = eventfd(0, EFD_CLOEXEC);
	if (ends[PATH_SLAVE].in < 0 || (both_ways && ends[PATH_MASTER].in < 0))
		return loop_refused("eventfd");
	return 0;
}

static int send_eventfd(struct path_end *end, int64_t number)
{
	const uint64_t one = 1;

	(void)number;
	return write(end->out, &one, sizeof(one)) < 0 ? errno : 0;
}

static int receive_eventfd(struct path_end *end, struct edge *edge)
{
	uint64_t count;

	if (read(end->in, &count, sizeof(count)) < 0)
		return errno;
	edge->number = EDGE_UNNUMBERED;
	edge->time_ns = 0;
	edge->count = (unsigned int)count;
	return 0;
}

const struct path_kind path_eventfd = {
	.name = "loop:eventfd",
	.open = open_eventfd,
	.send = send_eventfd,
	.receive = receive_eventfd,
};

/* loop:pipe: an edge is its number, written into a pipe. */

static int open_pipe(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
{
	int status = loop_check(rest, role, path_pipe.name), there[2], back[2];

	if (status)
		return status;
	if (pipe2(there, O_CLOEXEC) || (both_ways && pipe2(back, O_CLOEXEC)))
		return loop_refused("pipe");
	ends[PATH_SLAVE].in = there[0];
	ends[PATH_MASTER].out = there[1];
	if (both_ways) {
		ends[PATH_MASTER].in = back[0];
		ends[PATH_SLAVE].out = back[1];
	}
	return 0;
}

const struct path_kind path_pipe = {
	.name = "loop:pipe",
	.numbered = true,
	.open = open_pipe,
	.send = send_number,
	.receive = receive_numbers,
};

/* loop:socketpair: an edge is a message between two Unix sockets. */

static int open_socketpair(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
{
	int status = loop_check(rest, role, path_socketpair.name), fds[2];

	(void)both_ways;
	if (status)
		return status;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return loop_refused("socketpair");
	ends[PATH_MASTER].in = ends[PATH_MASTER].out = fds[0];
	ends[PATH_SLAVE].in = ends[PATH_SLAVE].out = fds[1];
	return 0;
}

const struct path_kind path_socketpair = {
	.name = "loop:socketpair",
	.numbered = true,
	.open = open_socketpair,
	.send = send_number,
	.receive = receive_numbers,
};

/* loop:udp: an edge is a datagram over the loopback interface. */

/* Opens a socket on a free port of 127.0.0.1. -1 with errno on failure. */
static int bind_socket(struct sockaddr_in *own)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*own);

	*own = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)own, len) || getsockname(fd, (struct sockaddr *)own, &len))
		return -1;
	return fd;
}

static int open_udp(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
{
	int status = loop_check(rest, role, path_loop_udp.name), fds[2];
	struct sockaddr_in own[2];

	(void)both_ways;
	if (status)
		return status;
	for (int i = 0; i < 2; i++) {
		fds[i] = bind_socket(&own[i]);
		if (fds[i] < 0)
			return loop_refused("UDP over 127.0.0.1");
	}
	for (int i = 0; i < 2; i++) {
		if (connect(fds[i], (struct sockaddr *)&own[1 - i], sizeof(own[0])))
			return loop_refused("UDP over 127.0.0.1");
		ends[i].in = ends[i].out = fds[i];
	}
	return 0;
}

const struct path_kind path_loop_udp = {
	.name = "loop:udp",
	.numbered = true,
	.open = open_udp,
	.send = send_number,
	.receive = receive_numbers,
};
