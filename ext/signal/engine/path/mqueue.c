// SPDX-License-Identifier: MIT
/* loop:mqueue: an edge is its number, sent through a POSIX message queue. A co-kernel that has message
 * queues uses its own. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "ext/signal/engine/path/path.h"
#include "rt/runtime.h"
#include "rt/wait.h"

#define MESSAGES 10 /* as many messages as any user may have */

/* Called before the slave becomes a process of its own, so that both know the same names. */
static char names[2][48]; /* names of the queues that slave and master read */

/* Returns 0 or an errno. */
static int open_queue(int queue, int flags, int *descriptor)
{
	struct mq_attr attr = {.mq_maxmsg = MESSAGES, .mq_msgsize = sizeof(int64_t)};

	*descriptor = mq_open(names[queue], flags | O_CLOEXEC, 0600, &attr);
	return *descriptor < 0 ? errno : 0;
}

/* The slave comes first and makes the queues. The master removes their names, so that they live only as
 * long as they are open. */
static int join_mqueue(struct path_end *end)
{
	int create = end->slave ? O_CREAT | O_EXCL : 0, error = 0;

	for (int queue = 0; queue < 2 && names[queue][0] && !error; queue++) {
		bool reads = end->slave == (queue == 0);

		error = open_queue(queue, create | (reads ? O_RDONLY : O_WRONLY),
				   reads ? &end->in : &end->out);
		if (!end->slave || error)
			mq_unlink(names[queue]);
	}
	return error;
}

static int open_mqueue(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
{
	int status = loop_check(rest, role, path_mqueue.name), error;

	if (status)
		return status;
	for (int queue = 0; queue < 1 + both_ways; queue++)
		snprintf(names[queue], sizeof(names[queue]), "/rtgauge-%d-%d", (int)getpid(), queue);
	if (RUNTIME_IS_COKERNEL)
		return 0; /* each process opens its own end */
	error = join_mqueue(&ends[PATH_SLAVE]);
	if (!error)
		error = join_mqueue(&ends[PATH_MASTER]);
	errno = error;
	return error ? loop_refused("POSIX message queue") : 0;
}

static int send_mqueue(struct path_end *end, int64_t number)
{
	return mq_send(end->out, (const char *)&number, sizeof(number), 0) ? errno : 0;
}

/* Called after a message was received into the edge's number. Returns 0 or an errno. */
static int received(struct edge *edge, ssize_t length)
{
	if (length < 0)
		return errno;
	edge->time_ns = 0;
	edge->count = 1;
	return 0;
}

static int receive_mqueue(struct path_end *end, struct edge *edge)
{
	return received(edge, mq_receive(end->in, (char *)&edge->number, sizeof(edge->number), NULL));
}

/* A co-kernel's queue is not a Linux descriptor that could be polled with a time. All messages that have
 * come are taken, because a time that has passed does not wait. */
static int receive_until_mqueue(struct path_end *end, struct edge *edge, int64_t until_ns)
{
	const struct timespec until = ns_timespec(until_ns), passed = {0};

	wait_until_monotonic(&until);
	if (clock_now_ns(CLOCK_MONOTONIC) < until_ns)
		return EINTR;
	return received(edge,
			mq_timedreceive(end->in, (char *)&edge->number, sizeof(edge->number), NULL, &passed));
}

const struct path_kind path_mqueue = {
	.name = "loop:mqueue",
	.numbered = true,
	.on_cokernel = true,
	.open = open_mqueue,
	.join = RUNTIME_IS_COKERNEL ? join_mqueue : NULL,
	.send = send_mqueue,
	.receive = receive_mqueue,
	.receive_until = RUNTIME_IS_COKERNEL ? receive_until_mqueue : NULL,
};
