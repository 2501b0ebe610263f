// SPDX-License-Identifier: MIT
/* loop:eventfd: an edge adds one to a counter in the kernel; who waits takes what it counts. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "signal/loop.h"

static int open_both(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
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

static int send_edge(struct path_end *end, int64_t number)
{
	const uint64_t one = 1;

	(void)number;
	return write(end->out, &one, sizeof(one)) < 0 ? errno : 0;
}

static int receive_edge(struct path_end *end, struct edge *edge)
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
	.open = open_both,
	.send = send_edge,
	.receive = receive_edge,
};
