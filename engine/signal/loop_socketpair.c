// SPDX-License-Identifier: MIT
/* loop:socketpair: an edge is a message between two Unix sockets. */
#include <sys/socket.h>

#include "signal/loop.h"

static int open_both(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
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
	.open = open_both,
	.send = loop_send,
	.receive = loop_receive,
};
