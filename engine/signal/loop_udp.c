// SPDX-License-Identifier: MIT
/* loop:udp: an edge is a datagram over the loopback interface. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "signal/loop.h"

/* A socket on a free port of 127.0.0.1; -1 and errno. */
static int bound(struct sockaddr_in *own)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*own);

	*own = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)own, len) || getsockname(fd, (struct sockaddr *)own, &len))
		return -1;
	return fd;
}

static int open_both(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
{
	int status = loop_check(rest, role, path_loop_udp.name), fds[2];
	struct sockaddr_in own[2];

	(void)both_ways;
	if (status)
		return status;
	for (int i = 0; i < 2; i++) {
		fds[i] = bound(&own[i]);
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
	.open = open_both,
	.send = loop_send,
	.receive = loop_receive,
};
