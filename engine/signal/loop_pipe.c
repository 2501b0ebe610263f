// SPDX-License-Identifier: MIT
/* loop:pipe: an edge is its number, written into a pipe. */
#include <fcntl.h>
#include <unistd.h>

#include "signal/loop.h"

static int open_both(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
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
	.open = open_both,
	.send = loop_send,
	.receive = loop_receive,
};
